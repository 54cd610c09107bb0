const storageKey = 'shop.trouble'
const slowMs = 1_500
const retryAfterSeconds = 5

/**
 * Creates a `fetch` that disturbs calls of the gateway. The modes are `slow`, `offline`, `lost`,
 * `frozen`, `busy` and `none`; the tab stores the mode.
 *
 * @param {object} deps
 * @param {string} deps.gatewayOrigin
 * @param {typeof globalThis.fetch} deps.fetch
 * @param {(name: string, payload: Record<string, unknown>) => void} deps.onRequest called after
 * each call
 */
export function createNetworkTrouble({ gatewayOrigin, fetch, onRequest }) {
  let mode = sessionStorage.getItem(storageKey) ?? 'none'
  const changes = new EventTarget()

  return {
    mode: () => mode,

    /** @param {string} next */
    choose(next) {
      const before = mode
      mode = next
      sessionStorage.setItem(storageKey, next)
      changes.dispatchEvent(new Event('change'))
      // Browsers fire the same events when the network is lost and returns.
      if (next === 'offline') window.dispatchEvent(new Event('offline'))
      if (before === 'offline') window.dispatchEvent(new Event('online'))
    },

    /** @param {RequestInfo | URL} input @param {RequestInit} [init] */
    async fetch(input, init) {
      const url = new URL(input instanceof Request ? input.url : input, location.href)
      if (url.origin !== gatewayOrigin) return fetch(input, init)
      const name = `${init?.method ?? 'GET'} ${url.pathname.replace(/^.*\/widget(?=\/)/, '')}${url.search}`
      const startedMs = performance.now()
      const tell = (/** @type {number | string} */ status) =>
        onRequest(name, { status, ms: Math.round(performance.now() - startedMs), trouble: mode })
      try {
        const response = await attempt(name, () => fetch(input, init), init?.signal ?? undefined)
        tell(response.status)
        return response
      } catch (error) {
        tell(init?.signal?.aborted ? 'cancelled by the widget' : 'no answer')
        throw error
      }
    },
  }

  /** @param {string} name @param {() => Promise<Response>} send @param {AbortSignal} [signal] */
  async function attempt(name, send, signal) {
    if (isMode('offline')) throw unreachable()
    if (isMode('busy')) return unavailable()
    if (isMode('slow')) await pause(signal)
    const response = await send()
    if (isMode('slow')) await pause(signal)
    if (isMode('offline') || (isMode('lost') && name.startsWith('POST /messages'))) {
      void response.body?.cancel()
      throw unreachable()
    }
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream')
    return isStream && response.body ? disturbed(response, response.body, signal) : response
  }

  /**
   * Returns a copy of the response. The current mode delays or interrupts each chunk of its body.
   *
   * @param {Response} response
   * @param {ReadableStream<Uint8Array>} body
   * @param {AbortSignal} [signal]
   */
  function disturbed({ status, headers }, body, signal) {
    const reader = body.getReader()
    const closed = new AbortController()
    const leave = () => {
      closed.abort()
      void reader.cancel().catch(() => {})
    }
    const stream = new ReadableStream({
      start(controller) {
        const end = (/** @type {unknown} */ error) => {
          leave()
          if (error) controller.error(error)
          else controller.close()
        }
        const onChange = () => {
          if (isMode('offline')) end(unreachable())
          else if (isMode('busy')) end(undefined)
        }
        changes.addEventListener('change', onChange, { signal: closed.signal })
        signal?.addEventListener('abort', () => end(signal.reason), { signal: closed.signal })
      },
      async pull(controller) {
        const { done, value } = await reader.read()
        while (isMode('frozen') && !closed.signal.aborted) await changed(closed.signal)
        if (isMode('slow')) await pause(closed.signal).catch(() => {})
        if (closed.signal.aborted) return
        if (!done) return controller.enqueue(value)
        leave()
        controller.close()
      },
      cancel: leave,
    })
    return new Response(stream, { status, headers })
  }

  /** @param {string} name */
  function isMode(name) {
    return mode === name
  }

  /** Resolves when another mode is chosen. @param {AbortSignal} signal */
  function changed(signal) {
    return new Promise((resolve) => {
      changes.addEventListener('change', resolve, { once: true })
      signal.addEventListener('abort', resolve, { once: true })
    })
  }
}

const unreachable = () => new TypeError('Failed to fetch')

function unavailable() {
  const envelope = { code: 'ServiceUnavailable', retryable: true, terminal: false, retryAfter: retryAfterSeconds }
  return Response.json(
    { ...envelope, correlationId: 'trouble-of-the-demo' },
    { status: 503, headers: { 'Retry-After': String(retryAfterSeconds) } },
  )
}

/** @param {AbortSignal} [signal] */
function pause(signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    setTimeout(resolve, slowMs)
    signal?.addEventListener('abort', () => reject(signal.reason))
  })
}
