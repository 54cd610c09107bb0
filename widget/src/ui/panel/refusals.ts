import { pageLifecycle } from '../../../../browser/page-lifecycle.ts'
import { isReturn } from '../../../../browser/platform.ts'
import type { ServiceClient } from '../../client/client.ts'

interface RefusalsDeps {
  client: ServiceClient
  /**
   * Called with an error code when the service refuses the installation or the page's origin.
   * Called with undefined when the service accepts them again.
   */
  onChange(code: string | undefined): void
}

/**
 * Detects when the service refuses this installation or the page's origin, and when it accepts them
 * again.
 */
export function followRefusals({ client, onChange }: RefusalsDeps) {
  let isRefused = false

  client.on('connection.changed', ({ state }) => {
    const { code = '' } = client.ended() ?? {}
    // Only codes of the service begin with a capital letter. So the service has refused the chat.
    const isRefusal = /^[A-Z]/.test(code) && !client.canStartNew()
    if (state === 'ended') setRefusal(isRefusal ? code : undefined)
  })
  client.on('session.ready', () => setRefusal(undefined))

  return {
    isRefused: () => isRefused,

    /**
     * Tries to start the chat again each time the page becomes visible or the network works again.
     * Returns a function that stops these attempts.
     */
    watch: () =>
      pageLifecycle.subscribe((signal) => {
        if (isReturn(signal) && pageLifecycle.isOnline()) tryAgain()
      }),

    tryAgain,
  }

  function setRefusal(code: string | undefined) {
    isRefused = code !== undefined
    onChange(code)
  }

  function tryAgain() {
    if (!isRefused || !client.ended()) return
    client.stop()
    void client.start()
  }
}
