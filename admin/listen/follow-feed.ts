import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { createBackoff } from '../../platform/concurrency/backoff.ts'
import type { Services } from '../services.ts'
import { fromFeed, type LocalEvent, type LocalPage } from './local-event.ts'

/** Resolves after the time, or when the signal aborts. */
export type Pause = (ms: number, signal: AbortSignal) => Promise<unknown>

export interface Following {
  signal: AbortSignal
  report: (line: string) => void
  pause: Pause
}

const pageSize = 50
const waitSeconds = 20
/** A call fails when a core has not answered this long after the end of its wait. */
const answerMs = 5_000

/** Yields the events of a feed until the signal aborts. An empty page says that the core has answered. */
export async function* followFeed(
  { events }: Pick<Services, 'events'>,
  { workspaceId, from, types }: { workspaceId: string; from: string | Date; types: string[] },
  { signal, report }: Pick<Following, 'signal' | 'report'>,
): AsyncGenerator<LocalPage> {
  const since = from instanceof Date ? timestampFromDate(from) : undefined
  let cursor = from instanceof Date ? '' : from
  const read = (wait: number) =>
    events.listEvents(
      { workspaceId, cursor, since, types, limit: pageSize, waitSeconds: wait },
      { signal, timeoutMs: wait * 1000 + answerMs },
    )
  // A failed first call is not repeated, because its cause is usually a wrong address, token or workspace.
  for (let page = await read(0); ; ) {
    const found: LocalEvent[] = []
    for (const event of page.events) {
      found.push(fromFeed(event, cursor))
      cursor = event.cursor
    }
    cursor = page.cursor
    yield { events: found, next: cursor }
    const next = await untilAnswered(() => read(waitSeconds), { signal, report })
    if (!next) return
    page = next
  }
}

/** Codes of a core that stops, restarts or is too busy. */
const passing = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Internal,
  Code.Unknown,
  Code.Aborted,
  Code.ResourceExhausted,
  Code.Canceled,
])
const pauses = { minMs: 250, maxMs: 5_000 }

/**
 * Repeats a call while the core does not answer it. Returns undefined if the signal aborts. Throws errors that a
 * repeat does not change.
 */
export async function untilAnswered<T>(
  call: () => Promise<T>,
  { signal, report }: Pick<Following, 'signal' | 'report'>,
): Promise<T | undefined> {
  for (const backoff = createBackoff(pauses); !signal.aborted; await backoff.pause(signal)) {
    try {
      const answer = await call()
      if (backoff.failures() > 0) report('the core answers again')
      return answer
    } catch (reason) {
      if (signal.aborted) return undefined
      const error = ConnectError.from(reason)
      if (!passing.has(error.code)) throw error
      if (backoff.failures() === 0) report(`the core does not answer (${Code[error.code]}); retrying`)
    }
  }
  return undefined
}
