import type { ServiceClient } from '../client.ts'
import { pageLifecycle } from './page-lifecycle.ts'

export interface RefusalsDeps {
  client: ServiceClient
  /** The service refuses the installation or the page's origin, or does so no longer. */
  onChange(code: string | undefined): void
}

/** Follows whether the service refuses the chat as such: nothing that the visitor does can begin one. */
export function followRefusals({ client, onChange }: RefusalsDeps) {
  let isRefused = false

  client.on('connection.changed', ({ state }) => {
    const { code = '' } = client.ended() ?? {}
    // The service's codes begin with a capital, the package's own do not.
    if (state === 'ended' && /^[A-Z]/.test(code) && !client.canStartNew()) tell(code)
  })
  client.on('session.ready', () => tell(undefined))

  return {
    isRefused: () => isRefused,

    /** Tries again when the page is looked at. The answer stops that. */
    watch: () =>
      pageLifecycle.subscribe(() => {
        if (pageLifecycle.isOnline()) tryAgain()
      }),

    tryAgain,
  }

  function tell(code: string | undefined) {
    isRefused = code !== undefined
    onChange(code)
  }

  function tryAgain() {
    if (!isRefused || !client.ended()) return
    client.stop()
    void client.start()
  }
}
