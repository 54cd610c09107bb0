import { WIDGET_PUBLIC_API_PREFIX } from '../api.ts'

/**
 * Sends a request that needs no grant. A browser hides the answer to a refused origin from the page, which then sees the same as of
 * a broken network. This returns the service's `OriginNotAllowed` instead. It is that if the service gives out `widget.js`, which
 * every page may read, and answers on another route of its API, but this page may not read that answer.
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
    // A probe that fails is a network failure like the first one. The query keeps caches from answering.
    await probe(`/widget.js?${Date.now()}`)
    await probe(route, 'no-cors')
    const isReadable = await probe(route).catch(() => undefined)
    if (isReadable) throw failure
    return Response.json({ code: 'OriginNotAllowed', terminal: true }, { status: 403 })
  }
}
