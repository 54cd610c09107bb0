import { WIDGET_PUBLIC_API_PREFIX } from '../../transport/api.ts'

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
    // Test whether the service responds at all. If one of the next two requests rejects, the
    // network has failed, so this function rejects, too. The query of the first URL bypasses
    // caches.
    await probe(`/widget.js?${Date.now()}`)
    await probe(route, 'no-cors')
    const isReadable = await probe(route).catch(() => {})
    if (isReadable) throw failure
    return Response.json({ code: 'OriginNotAllowed', terminal: true }, { status: 403 })
  }
}

let lastLogged = ''

/** Logs why the service refuses the chat, unless the same reason was logged last. */
export function logRefusal(code: string, siteKey: string) {
  const line = `Chat: ${code}. Allow ${location.origin} for ${siteKey} (console: Websites)`
  if (lastLogged !== line) console.error(line)
  lastLogged = line
}
