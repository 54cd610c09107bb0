import type { Http2SecureServer, Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { constants } from 'node:http2'
import { HEAD_MS } from '../../platform/http/bounded-server.ts'

const windowBytes = 16 * 1024 * 1024
/** How long a connection without open calls is kept, if one of its calls had a valid token. */
const idleMs = 75_000
/** How long a client may take to close an idle connection. */
const goneMs = 1_000
/** Refused or reset calls on a connection without any valid token. */
const strangerMax = 100
/** Reset calls on any other connection, in `windowMs`. */
const resetsMax = 1_000
const windowMs = 10_000

interface Session {
  isKnown: boolean
  open: number
  wasted: number
  since: number
  /** Whether the connection is being ended. Calls that still arrive are ignored. */
  isEnding?: true
}

const states = new WeakMap<ServerHttp2Session, Session>()

/**
 * Closes connections that send no whole head for `headMs`, and those on which too many calls are refused or
 * reset. Calls that are reset before their handler begins are hidden from the server's other listeners.
 * Returns the open connections.
 */
export function boundSessions(
  server: Http2Server | Http2SecureServer,
  headMs = HEAD_MS,
): ReadonlySet<ServerHttp2Session> {
  const sessions = new Set<ServerHttp2Session>()
  const handlers = server.listeners('stream')
  server.removeAllListeners('stream')

  server.on('session', (session: ServerHttp2Session) => {
    const state: Session = { isKnown: false, open: 0, wasted: 0, since: performance.now() }
    let timer = setTimeout(() => session.destroy(), headMs).unref()
    states.set(session, state)
    sessions.add(session)
    session.setLocalWindowSize(windowBytes)
    session.on('stream', (stream: ServerHttp2Stream) => {
      if (stream.destroyed || state.isEnding) {
        // Without a listener, its error would end the process.
        stream.on('error', () => {})
        waste(session)
        return
      }
      clearTimeout(timer)
      state.open += 1
      stream.once('aborted', () => waste(session))
      // The client may never send the rest of an answered call, which is not read.
      let rest: NodeJS.Timeout | undefined
      stream.once('finish', () => {
        if (!stream.readableEnded) rest = setTimeout(() => stream.close(), headMs).unref()
      })
      stream.once('close', () => {
        clearTimeout(rest)
        state.open -= 1
        if (state.open > 0 || session.destroyed) return
        clearTimeout(timer)
        timer = setTimeout(end, state.isKnown ? idleMs : headMs).unref()
      })
    })
    function end() {
      session.close()
      // A half head keeps a closed connection open.
      timer = setTimeout(() => session.destroy(), goneMs).unref()
    }
    session.on('close', () => {
      clearTimeout(timer)
      sessions.delete(session)
    })
  })

  server.on('stream', (stream: ServerHttp2Stream, ...rest: unknown[]) => {
    if (stream.destroyed || states.get(stream.session as ServerHttp2Session)?.isEnding) return
    for (const handler of handlers) handler.call(server, stream, ...rest)
  })
  return sessions
}

/** Notes whether a call has a valid token. Ends a connection on which too many calls have none. */
export function noteToken(stream: ServerHttp2Stream, isValid: boolean) {
  const session = stream.session as ServerHttp2Session | undefined
  const state = session && states.get(session)
  if (state && isValid) state.isKnown = true
  else if (session) waste(session)
}

function waste(session: ServerHttp2Session) {
  const state = states.get(session)
  if (state === undefined || session.destroyed || state.isEnding) return
  if (state.isKnown && performance.now() - state.since > windowMs) {
    state.since = performance.now()
    state.wasted = 0
  }
  state.wasted += 1
  if (state.wasted <= (state.isKnown ? resetsMax : strangerMax)) return
  state.isEnding = true
  // Node may abort if a session is destroyed while it reads from it (nodejs/node#64850).
  setImmediate(() => session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM))
}
