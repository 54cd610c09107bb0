import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { Temporal } from 'temporal-polyfill'
import { createSlots, NoSlotError } from '../../platform/concurrency/slots.ts'
import { createPace } from '../concurrency/pace.ts'
import { type Core, perCore } from '../core.ts'
import { invalid, unavailable } from '../errors.ts'
import { field, integer, validate } from '../rules.ts'
import { isDate, isTimeZone } from '../workspaces/opening-hours.ts'
import { type ReportedConversation, reportStoreOf, rowOf } from './report-store.ts'

interface ReportQuery {
  workspaceId: string
  days: number
  timeZone: string
}

const maxDays = 35
const maxConversations = 250_000
const maxMs = 300_000
const progressEveryMs = 500
const maxListedTags = 100
const quarterMs = 15 * 60_000

/** A core runs two reports at once, and one for each workspace. */
const placesOf = perCore(() => ({
  slots: createSlots({ max: 2, waitingMax: 20 }),
  pace: createPace({ share: 0.5 }),
}))

/**
 * Reports on the conversations that began in some days. Yields how many were read so far, then the report.
 * Reads small parts with pauses, so that 100,000 conversations delay no other call. Errors:
 * `ValidationFailed`, also if too many were active since the first day; `ServiceUnavailable`.
 */
export async function* readReport(
  core: Core,
  query: Pick<ReportQuery, 'workspaceId'> & Partial<ReportQuery> & { firstDay?: string },
  signal: AbortSignal,
) {
  const { workspaceId, days = 7, timeZone = 'UTC', firstDay } = query
  validate(
    field('/days', days, integer(1, maxDays)),
    field('/timeZone', timeZone, (value) => (isTimeZone(value) ? undefined : 'timeZone')),
    field('/firstDay', firstDay, (value) => (isDate(value) ? undefined : 'date')),
  )
  const today = localTime(core.now(), timeZone).toPlainDate()
  const first = firstDay ? Temporal.PlainDate.from(firstDay) : today.subtract({ days: days - 1 })
  let conversations = 0
  const onPart = (count: number) => {
    conversations += count
  }
  const left = new AbortController()
  const either = AbortSignal.any([signal, left.signal])
  // The report is computed at full speed, however slowly the caller reads: it holds a slot while it runs.
  const computing = compute(core, { workspaceId, first, days, timeZone }, onPart, either)
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
}

async function compute(
  core: Core,
  { workspaceId, first, days, timeZone }: ReportQuery & { first: Temporal.PlainDate },
  onPart: (conversations: number) => void,
  signal: AbortSignal,
) {
  const slot = await placesOf(core)
    .slots.enter([{ key: workspaceId, max: 1, waitingMax: 4 }], signal)
    .catch((error) => {
      throw error instanceof NoSlotError ? unavailable(error) : error
    })
  try {
    const startOf = (day: Temporal.PlainDate) => new Date(day.toZonedDateTime(timeZone).epochMilliseconds)
    const range = { since: startOf(first), before: startOf(first.add({ days })) }
    const { add, report } = createGroups(first, days, timeZone)
    for await (const part of partsIn(core, workspaceId, range, signal)) {
      part.filter(({ begunAt }) => begunAt >= range.since && begunAt < range.before).forEach(add)
      onPart(part.length)
    }
    return await report()
  } finally {
    slot.leave()
  }
}

async function* partsIn(core: Core, workspaceId: string, range: { since: Date; before: Date }, signal: AbortSignal) {
  const store = reportStoreOf(core)
  const endsAt = performance.now() + maxMs
  const tagsOf = new Map<string, string[]>()
  for await (const found of store.active(workspaceId, range)) {
    signal.throwIfAborted()
    if (performance.now() > endsAt) throw unavailable()
    const unread = found.filter(({ conversationId }) => !tagsOf.has(conversationId))
    for (const { conversationId, tags } of unread) tagsOf.set(conversationId, tags)
    if (tagsOf.size > maxConversations) throw invalid('/days', 'maxItems')
    const ids = unread.map(({ conversationId }) => conversationId)
    const read = await placesOf(core).pace(() => store.read(ids), { signal })
    yield read.map((one) => ({ ...one, tags: tagsOf.get(one.conversationId) ?? [] }))
  }
}

const localTime = (at: number, timeZone: string) =>
  Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone)

type Group = ReportedConversation[]

function createGroups(first: Temporal.PlainDate, days: number, timeZone: string) {
  const total: Group = []
  const byDay = new Map<string, Group>()
  const byHour = new Map<string, Group>()
  const byTag = new Map<string, Group>()
  for (let day = 0; day < days; day += 1) byDay.set(first.add({ days: day }).toString(), [])
  for (let hour = 0; hour < 24; hour += 1) byHour.set(hourName(hour), [])
  /** Caches the rows of each quarter of an hour, because a conversion to local time is slow. */
  const quarters = new Map<number, (Group | undefined)[]>()

  function rowsAt(time: number) {
    const quarter = Math.floor(time / quarterMs)
    const known = quarters.get(quarter)
    if (known) return known
    const local = localTime(quarter * quarterMs, timeZone)
    const rows = [byDay.get(local.toPlainDate().toString()), byHour.get(hourName(local.hour))]
    quarters.set(quarter, rows)
    return rows
  }

  /** Makes one row per turn of the event loop, because sorting many times takes long. */
  async function rowsOf(groups: Iterable<[string, Group]>) {
    const rows: ReturnType<typeof rowOf>[] = []
    for (const [name, group] of groups) {
      rows.push(rowOf(name, group))
      await nextTurn()
    }
    return rows
  }

  return {
    add(conversation: ReportedConversation) {
      for (const tag of conversation.tags) if (!byTag.has(tag)) byTag.set(tag, [])
      const tagged = conversation.tags.map((tag) => byTag.get(tag))
      for (const group of [total, ...rowsAt(conversation.begunAt.getTime()), ...tagged]) group?.push(conversation)
    },

    async report() {
      const mostUsedFirst = ([one, ofOne]: [string, Group], [other, ofOther]: [string, Group]) =>
        ofOther.length - ofOne.length || (one < other ? -1 : 1)
      const tags = [...byTag].sort(mostUsedFirst).slice(0, maxListedTags)
      const [byDays, byHours, byTags] = [await rowsOf(byDay), await rowsOf(byHour), await rowsOf(tags)]
      return { firstDay: first.toString(), total: rowOf('', total), byDay: byDays, byHour: byHours, byTag: byTags }
    },
  }
}

const hourName = (hour: number) => String(hour).padStart(2, '0')
