import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { Services } from '../services.ts'
import { type CoreCallOptions, untilAnswered } from './core-calls.ts'
import { fromFeed, type LocalEvent, type LocalPage } from './local-event.ts'

const pageSize = 50
const waitSeconds = 20
/** A call fails when a core has not answered this long after the end of its wait. */
const answerMs = 5_000

/** Yields the events of a feed until the signal aborts. An empty page says that the core has answered. */
export async function* followFeed(
  { events }: Pick<Services, 'events'>,
  { workspaceId, from, types }: { workspaceId: string; from: string | Date; types: string[] },
  { signal, report }: CoreCallOptions,
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
