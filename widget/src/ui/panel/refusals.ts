import { pageLifecycle } from '../../../../browser/page-lifecycle.ts'
import { isReturn } from '../../../../browser/platform.ts'
import type { ServiceClient } from '../../client/client.ts'
import type { ServiceClientOptions } from '../../client/client-options.ts'
import { WIDGET_PUBLIC_API_PREFIX } from '../../transport/api.ts'

/** Calls `onChange` with the code when the service refuses this page, and with undefined when it accepts it. */
export function followRefusals(client: ServiceClient, onChange: (code: string | undefined) => void) {
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

    /** Tries to start the chat when the page is visible or online again, until the returned function is called. */
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

/**
 * Sends a request that contains no grant. If the service refuses the page's origin, the browser
 * hides the response, and `fetch` rejects as after a network failure. To distinguish the two cases,
 * this function sends test requests after a failure. If the service responds but the page may not
 * read the response, resolves to a response with the error code `OriginNotAllowed`.
 */
export async function readableRefusal(
  apiBaseUrl: string,
  send: () => Promise<Response>,
  signal?: AbortSignal | null,
): Promise<Response> {
  const probe = (path: string, mode?: RequestMode) => fetch(apiBaseUrl + path, { mode, signal })
  const route = `${WIDGET_PUBLIC_API_PREFIX}/messages`
  try {
    return await send()
  } catch (failure) {
    // If one of these rejects, the network has failed. The query bypasses caches.
    await probe(`/widget.js?${Date.now()}`)
    await probe(route, 'no-cors')
    const isReadable = await probe(route).catch(() => {})
    if (isReadable) throw failure
    return Response.json({ code: 'OriginNotAllowed', terminal: true }, { status: 403 })
  }
}

/** A request without a grant resolves to an answer with the code if the page's origin is refused. */
export function readableFetch({ apiBaseUrl, platform }: ServiceClientOptions): typeof fetch {
  return (input, init) => {
    const send = () => (platform?.fetch ?? fetch)(input, init)
    const isScoped = 'Authorization' in init!.headers!
    return isScoped ? send() : readableRefusal(apiBaseUrl.replace(/\/+$/, ''), send, init!.signal)
  }
}

/** What a developer can do about a code. Other codes have no line. */
const remedies: Record<string, (siteKey: string) => string> = {
  OriginNotAllowed: (siteKey) => `Allow ${location.origin} for ${siteKey} (console: Websites)`,
  InstallationNotFound: (siteKey) => `No website has the site key ${siteKey} (console: Websites)`,
  ConnectionDisabled: (siteKey) => `Enable ${siteKey} and its connection (console: Websites)`,
  WidgetVersionUnsupported: () => 'Load the current widget.js or package',
  IdentityAssertionInvalid: (siteKey) => `Check key, audience and claims of the assertion for ${siteKey}`,
  IdentityAssertionExpired: () => "Sign the assertion when it is asked for, and check your server's clock",
  IdentityAssertionReplayed: () => 'Sign a new assertion, with a new nonce, each time',
  identity_unavailable: () => 'identityProvider failed or took more than 15 s',
  identity_mismatch: () => 'The assertion has another subject than identify() asked for',
}
const logged = new Set<string>()

/** Logs what a developer can do about a refusal, once for each code. */
export function logRefusal(code: string, siteKey: string) {
  const remedy = remedies[code]?.(siteKey)
  const line = `Chat: ${code}. ${remedy}`
  if (remedy && !logged.has(line)) console.error(line)
  logged.add(line)
}
