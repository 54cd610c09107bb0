const storageKey = 'shop.trouble'
const slowMs = 1_500
const retryAfterSeconds = 5

/** What can be wrong with the network between this tab and the gateway. */
export const troubles = {
  none: { name: 'No trouble', does: 'Every call goes through as it is.', watch: '' },
  slow: {
    name: 'Slow',
    does: 'Each call and each answer takes 1.5 seconds longer.',
    watch: 'A message shows “Sending…” for as long as it is not accepted, and not a moment less.',
  },
  offline: {
    name: 'Offline',
    does: 'No call reaches the gateway, and the open stream breaks.',
    watch: 'Write something, even reload: it waits, says so, and is sent once when you switch this off.',
  },
  lost: {
    name: 'Answers lost',
    does: 'Messages reach the gateway and are stored there. Its answers never come back.',
    watch: 'The widget cannot know, so it asks again with the same operation. Count the bubbles: one.',
  },
  frozen: {
    name: 'Stream half dead',
    does: 'The stream stays open and brings nothing: its bytes are held back until you switch this off.',
    watch: 'Sending works. After two and a half missed heartbeats the widget says that it reconnects; nothing is lost.',
  },
  busy: {
    name: 'Errors 503',
    does: 'Each call is answered 503 with “Retry-After: 5”, and the stream ends.',
    watch: 'Look at the times in the event log: no call comes again before the five seconds are over.',
  },
}

/** @typedef {keyof typeof troubles} Trouble */

/**
 * A `fetch` that breaks what goes to the gateway in the chosen way and leaves everything else alone. The choice holds for the
 * tab, reloads included.
 *
 * @param {object} deps
 * @param {string} deps.gatewayOrigin
 * @param {typeof globalThis.fetch} deps.fetch
 * @param {(name: string, payload: Record<string, unknown>) => void} deps.onRequest told of each call, without headers and bodies
 */
export function createNetworkTrouble({ gatewayOrigin, fetch, onRequest }) {
  const stored = sessionStorage.getItem(storageKey) ?? 'none'
  /** @type {Trouble} */
  let mode = stored in troubles ? /** @type {Trouble} */ (stored) : 'none'
  /** @type {Set<(mode: Trouble, before: Trouble) => void>} */
  const listeners = new Set()

  return {
    mode: () => mode,

    /** @param {Trouble} next */
    choose(next) {
      const before = mode
      if (next === before) return
      mode = next
      if (next === 'none') sessionStorage.removeItem(storageKey)
      else sessionStorage.setItem(storageKey, next)
      for (const listener of listeners) listener(next, before)
      // What a browser tells its pages when the network goes and comes.
      if (next === 'offline') window.dispatchEvent(new Event('offline'))
      if (before === 'offline') window.dispatchEvent(new Event('online'))
    },

    /** @param {(mode: Trouble, before: Trouble) => void} listener */
    subscribe: (listener) => void listeners.add(listener),

    /** @param {RequestInfo | URL} input @param {RequestInit} [init] */
    async fetch(input, init) {
      const url = new URL(input instanceof Request ? input.url : input, location.href)
      if (url.origin !== gatewayOrigin) return fetch(input, init)
      const name = `${init?.method ?? 'GET'} ${url.pathname.replace(/^.*\/widget(?=\/)/, '')}${url.search}`
      const startedMs = performance.now()
      const tell = (/** @type {number | string} */ status) =>
        onRequest(name, {
          status,
          ms: Math.round(performance.now() - startedMs),
          ...(mode !== 'none' && { trouble: mode }),
        })
      try {
        const response = await attempt(name, () => fetch(input, init), init?.signal ?? undefined)
        tell(response.status)
        return response
      } catch (error) {
        tell(init?.signal?.aborted ? 'given up by the widget' : 'no answer')
        throw error
      }
    },
  }

  /** @param {string} name @param {() => Promise<Response>} send @param {AbortSignal} [signal] */
  async function attempt(name, send, signal) {
    if (mode === 'offline') throw unreachable()
    if (mode === 'busy') return unavailable()
    if (mode === 'slow') await pause(slowMs, signal)
    const response = await send()
    if (mode === 'slow') await pause(slowMs, signal)
    const isMessage = /^POST \/messages/.test(name)
    if (/** @type {Trouble} */ (mode) === 'offline' || (mode === 'lost' && isMessage)) {
      void response.body?.cancel()
      throw unreachable()
    }
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream')
    return isStream && response.body ? brittle(response, response.body, signal) : response
  }

  /**
   * The same stream, with whatever befalls it while it is open.
   *
   * @param {Response} response @param {ReadableStream<Uint8Array>} body @param {AbortSignal} [signal]
   */
  function brittle({ status, headers }, body, signal) {
    const reader = body.getReader()
    /** @type {(mode: Trouble) => void} */
    let onMode = () => {}
    const leave = () => {
      listeners.delete(onMode)
      void reader.cancel().catch(() => {})
    }
    const stream = new ReadableStream({
      start(controller) {
        onMode = (next) => {
          if (next !== 'offline' && next !== 'busy') return
          leave()
          if (next === 'busy') controller.close()
          else controller.error(unreachable())
        }
        listeners.add(onMode)
        signal?.addEventListener('abort', () => {
          leave()
          controller.error(signal.reason)
        })
      },
      async pull(controller) {
        const { done, value } = await reader.read()
        while (mode === 'frozen' && !signal?.aborted) await changed(signal)
        if (mode === 'slow') await pause(slowMs, signal)
        if (signal?.aborted || !listeners.has(onMode)) return
        if (!done) return controller.enqueue(value)
        leave()
        controller.close()
      },
      cancel: leave,
    })
    return new Response(stream, { status, headers })
  }

  /** Until another trouble is chosen. @param {AbortSignal} [signal] */
  function changed(signal) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const end = () => {
          listeners.delete(end)
          resolve()
        }
        listeners.add(end)
        signal?.addEventListener('abort', end, { once: true })
      })
    )
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

/** @param {number} ms @param {AbortSignal} [signal] */
function pause(ms, signal) {
  return /** @type {Promise<void>} */ (
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const timer = setTimeout(resolve, ms)
      signal?.addEventListener('abort', () => {
        clearTimeout(timer)
        reject(signal.reason)
      })
    })
  )
}
