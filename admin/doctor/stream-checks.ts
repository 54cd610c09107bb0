import { type BrowserCall, jsonOf, refusalOf } from './browser-calls.ts'
import { type Finding, fault, fine } from './findings.ts'

/** A gateway sends the first bytes of a stream at once. */
const FIRST_BYTES_MS = 5_000

/** Opens a session, keeps its stream open for `openMs`, and ends the session. Sends no message. */
export async function* streamFindings(
  call: BrowserCall,
  siteKey: string,
  openMs: number,
): AsyncGenerator<Finding, boolean> {
  const created = await call({
    method: 'POST',
    path: '/sessions',
    body: { publicSiteKey: siteKey, clientInstanceId: 'doctor' },
  })
  const session = await jsonOf(created)
  const grant = session?.accessGrant
  if (created.status !== 201 || typeof grant !== 'string') {
    yield fault(`a session was refused: ${refusalOf(created.status, session)}`)
    return false
  }
  try {
    yield* openStreamFindings(call, grant, openMs)
  } finally {
    await call({ method: 'POST', path: '/sessions/close', grant, body: { scope: 'continuity' } }).catch(() => {})
  }
  return true
}

async function* openStreamFindings(call: BrowserCall, grant: string, openMs: number): AsyncGenerator<Finding> {
  const stop = new AbortController()
  const startedAt = performance.now()
  // If a proxy buffers the whole answer, not even its headers arrive.
  const noAnswer = setTimeout(() => stop.abort(), FIRST_BYTES_MS)
  try {
    const answer = await call({
      path: '/events',
      grant,
      headers: { accept: 'text/event-stream', 'accept-encoding': 'gzip, br' },
      signal: stop.signal,
    })
    if (answer.status !== 200 || !answer.body) {
      yield fault(`the event stream was refused: ${refusalOf(answer.status, await jsonOf(answer))}`)
      return
    }
    const encoding = answer.headers.get('content-encoding')
    if (encoding) yield fault(`the proxy compresses the event stream (${encoding}): exclude text/event-stream`)
    const chunks = answer.body.getReader()
    const first = await chunks.read()
    clearTimeout(noAnswer)
    if (first.done) {
      yield fault('the event stream ended before its first byte: the proxy closes it')
      return
    }
    yield fine('events arrive when they are sent')
    yield await endFinding(chunks, startedAt, openMs)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    yield fault('the event stream sent nothing for 5 s: turn response buffering off in the proxy')
  } finally {
    clearTimeout(noAnswer)
    stop.abort()
  }
}

async function endFinding(
  chunks: ReadableStreamDefaultReader<Uint8Array>,
  startedAt: number,
  openMs: number,
): Promise<Finding> {
  const seconds = () => Math.round((performance.now() - startedAt) / 1_000)
  let end: NodeJS.Timeout | undefined
  const isOver = new Promise<'over'>((resolve) => {
    end = setTimeout(() => resolve('over'), openMs)
  })
  try {
    while (true) {
      const next = await Promise.race([chunks.read(), isOver])
      if (next === 'over') return fine(`the event stream stayed open for ${seconds()} s`)
      if (next.done) return endedEarly(seconds())
    }
  } catch {
    return endedEarly(seconds())
  } finally {
    clearTimeout(end)
  }
}

const endedEarly = (seconds: number): Finding =>
  fault(
    `the event stream ended after ${seconds} s: set the proxy’s read timeout far above HEARTBEAT_SECONDS, such as an hour`,
  )
