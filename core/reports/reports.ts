import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Temporal } from 'temporal-polyfill'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { createSlots, NoSlotError } from '../../platform/concurrency/slots.ts'
import { createPace } from '../concurrency/pace.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { field, integer, validate } from '../rules.ts'
import { isDate, isTimeZone } from '../workspaces/opening-hours.ts'
import { createTally, type Report, type ReportedConversation, type Tally } from './model.ts'
import type { ReportStore } from './report-store.ts'

interface ReportQuery {
  workspaceId: string
  days: number
  timeZone: string
}

export interface Reports {
  /**
   * Reports on the conversations that began in some days. Yields the number of conversations that were
   * read so far, then the report. Errors: ValidationFailed, also if too many conversations were active
   * since the first day; ServiceUnavailable.
   */
  read(
    query: Pick<ReportQuery, 'workspaceId'> & Partial<ReportQuery> & { firstDay?: string },
    signal: AbortSignal,
  ): AsyncIterable<{ conversations: number } | Report>
}

const maxDays = 35
/** Maximum number of conversations that one report reads. */
const maxConversations = 250_000
/** Time after which a report gives up. */
const maxMs = 300_000
const progressEveryMs = 500
const maxListedTags = 100
/** Maximum number of different tags that one report counts. */
const maxCountedTags = 1000
const quarterMs = 15 * 60_000

/**
 * Computes reports from the log, in small parts with pauses, so that a report of 100,000 conversations
 * delays no other call. A core runs two reports at once, and one for each workspace.
 */
export function createReports({ store, now }: { store: ReportStore; now: () => number }): Reports {
  const slots = createSlots({ max: 2, waitingMax: 20 })
  const pace = createPace({ share: 0.5 })

  /** Yields the conversations that were active in a range, in parts. */
  async function* partsIn(workspaceId: string, range: { since: Date; before: Date }, signal: AbortSignal) {
    const endsAt = performance.now() + maxMs
    const tagsOf = new Map<string, string[]>()
    for await (const found of store.active(workspaceId, range)) {
      signal.throwIfAborted()
      if (performance.now() > endsAt) throw unavailable()
      const unread = found.filter(({ conversationId }) => !tagsOf.has(conversationId))
      for (const { conversationId, tags } of unread) tagsOf.set(conversationId, tags)
      if (tagsOf.size > maxConversations)
        throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/days', rule: 'maxItems' }] })
      const read = await pace(() => store.read(unread.map(({ conversationId }) => conversationId)), { signal })
      yield read.map((one) => ({ ...one, tags: tagsOf.get(one.conversationId) ?? [] }))
    }
  }

  /** Computes a report when the core has room for it. */
  async function compute(
    { workspaceId, first, days, timeZone }: ReportQuery & { first: Temporal.PlainDate },
    onPart: (conversations: number) => void,
    signal: AbortSignal,
  ): Promise<Report> {
    const slot = await slots.enter([{ key: workspaceId, max: 1, waitingMax: 4 }], signal).catch((error) => {
      throw error instanceof NoSlotError ? unavailable(error) : error
    })
    try {
      const tallies = createTallies(first, days, timeZone)
      const startOf = (day: Temporal.PlainDate) => new Date(day.toZonedDateTime(timeZone).epochMilliseconds)
      const range = { since: startOf(first), before: startOf(first.add({ days })) }
      for await (const part of partsIn(workspaceId, range, signal)) {
        const begun = part.filter(({ begunAt }) => begunAt >= range.since && begunAt < range.before)
        for (const conversation of begun) tallies.add(conversation)
        onPart(part.length)
      }
      return { firstDay: first.toString(), ...(await tallies.rows()) }
    } finally {
      slot.leave()
    }
  }

  return {
    async *read({ workspaceId, days = 7, timeZone = 'UTC', firstDay }, signal) {
      validate(
        field('/days', days, integer(1, maxDays)),
        field('/timeZone', timeZone, (value) => (isTimeZone(value) ? undefined : 'timeZone')),
        field('/firstDay', firstDay, (value) => (isDate(value) ? undefined : 'date')),
      )
      const today = localTime(now(), timeZone).toPlainDate()
      const first = firstDay ? Temporal.PlainDate.from(firstDay) : today.subtract({ days: days - 1 })
      let conversations = 0
      const onPart = (count: number) => {
        conversations += count
      }
      const left = new AbortController()
      // The work does not wait for the caller, who may read slowly and would hold the slot.
      const computing = compute({ workspaceId, first, days, timeZone }, onPart, AbortSignal.any([signal, left.signal]))
      computing.catch(() => {})
      try {
        for (;;) {
          yield { conversations }
          const report = await Promise.race([computing, delay(progressEveryMs, undefined, { ref: false })])
          if (!report) continue
          yield report
          return
        }
      } finally {
        left.abort()
      }
    },
  }
}

const localTime = (at: number, timeZone: string) =>
  Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone)

function createTallies(first: Temporal.PlainDate, days: number, timeZone: string) {
  const named = (names: string[]) => new Map(names.map((name) => [name, createTally(name)]))
  const total = createTally('')
  const byDay = named(Array.from({ length: days }, (_, index) => first.add({ days: index }).toString()))
  const byHour = named(Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, '0')))
  const byTag = new Map<string, Tally>()
  /** Day and hour of each quarter of an hour, because a conversion is slow. */
  const quarters = new Map<number, { day: string; hour: string }>()

  function placeOf(at: Date) {
    const quarter = Math.floor(at.getTime() / quarterMs)
    const known = quarters.get(quarter)
    if (known) return known
    const local = localTime(quarter * quarterMs, timeZone)
    const place = { day: local.toPlainDate().toString(), hour: String(local.hour).padStart(2, '0') }
    quarters.set(quarter, place)
    return place
  }

  function tallyOf(tag: string): Tally | undefined {
    const known = byTag.get(tag)
    if (known || byTag.size >= maxCountedTags) return known
    const tally = createTally(tag)
    byTag.set(tag, tally)
    return tally
  }

  /** Makes one row in a turn of the event loop, because sorting the times of many answers takes long. */
  async function rowsOf(tallies: Iterable<Tally>) {
    const rows = []
    for (const tally of tallies) {
      rows.push(tally.row())
      await nextTurn()
    }
    return rows
  }

  return {
    add(conversation: ReportedConversation) {
      const { day, hour } = placeOf(conversation.begunAt)
      const tallies = [total, byDay.get(day), byHour.get(hour), ...conversation.tags.map(tallyOf)]
      for (const tally of tallies) tally?.add(conversation)
    },

    async rows() {
      const tags = [...byTag.values()].sort((one, other) => other.conversations - one.conversations)
      return {
        total: total.row(),
        byDay: await rowsOf(byDay.values()),
        byHour: await rowsOf(byHour.values()),
        byTag: await rowsOf(tags.slice(0, maxListedTags)),
      }
    },
  }
}
