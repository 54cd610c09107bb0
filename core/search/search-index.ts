import { slicesOf } from '../../platform/concurrency/batcher.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { createJobs } from '../concurrency/job.ts'
import { createPace } from '../concurrency/pace.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { type Core, perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { createLogFollower } from '../log/log-follower.ts'
import type { LogEvent } from '../log-event.ts'
import type { Identity, Session } from '../sessions/model.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { type SearchEntry, type SearchSource, type SearchText, searchEntriesOf } from './search-entry-store.ts'
import { indexedTermsOf } from './terms-model.ts'

type MessageSource = Extract<SearchSource, { kind: 'message' }>

/** Maximum number of events that wait in memory. `catchUp` adds the entries of further ones. */
const maxWaiting = 10_000
/** A write of this size delays other database calls by some milliseconds. */
const batchSize = 50
/** Maximum time from the read of a text to the write of its entry; a removal waits longer, a minute. */
const maxAgeMs = 20_000
const maxKnown = 50_000
/** Later words of a longer text are not indexed, which protects the database. */
const maxTerms = 400

/**
 * Adds search entries behind the log, so that a send waits for none. A follower of the logs adds what a
 * crash, a full queue or a failed write left out.
 */
export const searchIndexOf = perCore((core) => {
  const { bus, logger } = core
  const store = searchEntriesOf(core)
  const { signal } = core.closing
  let waiting: { event: LogEvent; readAt: number }[] = []
  const lagMs = () => Math.max(follower.lagMs(), waiting[0] === undefined ? 0 : performance.now() - waiting[0].readAt)
  const paced = createPace({ share: 1 / 5, lagMs, signal })
  const workspaces = createLruCache<string>(maxKnown)
  /** Sessions whose visitor has an entry or no name. */
  const knownVisitors = createLruCache<true>(maxKnown)

  bus.on('appended', (event) => {
    if (isSearched(event) && waiting.length < maxWaiting) waiting.push({ event, readAt: performance.now() })
  })

  async function addMessages(events: LogEvent[]) {
    const ids = [...new Set(events.map(({ conversationId }) => conversationId))]
    const unknown = ids.filter((id) => workspaces.get(id) === undefined)
    if (unknown.length > 0)
      for (const [id, workspaceId] of await store.workspacesOf(unknown)) workspaces.set(id, workspaceId)
    await store.insert(events.flatMap((event) => toEntry(event, workspaces.get(event.conversationId)) ?? []))
  }

  /** Adds the names of visitors. If a session was removed meanwhile, removes its entry again. */
  async function addVisitors(events: LogEvent[]) {
    for (const { type, sessionId } of events)
      if (type === 'session.identified' && sessionId !== undefined) knownVisitors.delete(sessionId)
    const sessionIds = [...new Set(events.flatMap(visitorSessionOf))].filter((id) => !knownVisitors.get(id))
    if (sessionIds.length === 0) return
    const sessions = sessionStoreOf(core)
    const entries = (await sessions.find(sessionIds)).filter(({ identity }) => identity).map(toVisitorEntry)
    if (entries.length > 0) {
      await store.replace(entries)
      const left = new Set((await sessions.find(sessionIds)).map(({ sessionId }) => sessionId))
      const isGone = ({ source }: SearchEntry) => source.kind === 'visitor' && !left.has(source.sessionId)
      await store.remove(entries.filter(isGone).map(({ source }) => source))
    }
    for (const id of sessionIds) knownVisitors.set(id, true)
  }

  async function remove(redactions: LogEvent[]) {
    const sources = redactions.flatMap(({ conversationId, type, messageSequence: sequence }) =>
      type === 'message.redacted' && sequence ? [{ kind: 'message' as const, conversationId, sequence }] : [],
    )
    await store.remove(sources)
  }

  async function addOthers(events: LogEvent[]) {
    const texts = await store.leadsAndNotesOf([...new Set(events.map(({ conversationId }) => conversationId))])
    const missing = new Set(await store.missing(texts.map(({ source }) => source)))
    await store.insert(texts.filter(({ source }) => missing.has(source)).map(indexed))
  }

  /** Writes after a pause, unless the core stops. */
  const write = (work: () => Promise<void>) =>
    paced(async () => {
      if (!signal.aborted) await work()
    })

  const flushing = createSingleFlight(
    () => waiting.length > 0 && !signal.aborted,
    () =>
      write(async () => {
        const batch = waiting.slice(0, batchSize)
        waiting = waiting.slice(batchSize)
        const events = batch.filter(({ readAt }) => isRecent(readAt)).map(({ event }) => event)
        if (events.length === 0) return
        await addMessages(events)
        await addVisitors(events)
      }),
    { paceMs: 100, isFull: () => waiting.length >= batchSize },
  )

  const follower = createLogFollower(core, { name: 'search', handle: addMissing, signal })

  async function addMissing(events: LogEvent[]) {
    const readAt = performance.now()
    // An entry may have been written after its message was withdrawn.
    await remove(events)
    const searched = events.filter(isSearched)
    const missing = new Set((await store.missing(searched.flatMap(sourceOf))).map(placeOf))
    const absent = searched.filter((event) => sourceOf(event).some((source) => missing.has(placeOf(source))))
    for (const part of slicesOf(absent, batchSize))
      await write(async () => {
        if (!isRecent(readAt)) throw new Error('the events were read too long ago')
        await addMessages(part)
      })
    await write(() => addVisitors(searched))
    await write(() => addOthers(searched))
    if (absent.length > 0) logger.debug({ count: absent.length }, 'missing search entries added')
  }

  return {
    /** Adds the entry of a stored note or lead. Never throws, because `catchUp` adds missing entries. */
    async add(text: SearchText) {
      await store
        .insert([indexed(text)])
        .catch(logFailure(logger, 'search entry not written; the catch-up will add it'))
    },

    remove,

    /** Resolves when the events that were appended before this call have entries. */
    flush: flushing.run,

    catchUp: follower.catchUp,

    lagMs,
  }
})

export function searchJobs(core: Core) {
  const { flush, catchUp } = searchIndexOf(core)
  return createJobs(core, {
    'search entries': [1_000, flush],
    'catch-up of search entries': [60_000, catchUp],
  })
}

/** A growing message is found when it has ended. */
const isSearched = ({ message, type, growth }: LogEvent) =>
  (message !== undefined && !growth) || type === 'session.identified'

const sourceOf = ({ conversationId, sequence, messageSequence, message }: LogEvent): MessageSource[] =>
  message ? [{ kind: 'message', conversationId, sequence: messageSequence ?? sequence }] : []

const placeOf = ({ conversationId, sequence }: MessageSource) => `${conversationId} ${sequence}`

const visitorSessionOf = ({ message, sessionId }: LogEvent) => message?.sessionId ?? sessionId ?? []

function toEntry(event: LogEvent, workspaceId: string | undefined): SearchEntry | undefined {
  const [source] = sourceOf(event)
  // The conversation was removed.
  if (!source || workspaceId === undefined) return undefined
  const terms = distinctTerms([event.message!.body])
  return terms.length === 0 ? undefined : { source, workspaceId, at: event.occurredAt, terms }
}

function toVisitorEntry({ sessionId, conversationId, workspaceId, identity }: Session): SearchEntry {
  return {
    source: { kind: 'visitor', conversationId, sessionId },
    workspaceId,
    at: identity!.verifiedAt,
    terms: distinctTerms(visitorTexts(identity!)),
  }
}

/** Texts by which a verified visitor is found. */
export function visitorTexts({ displayName = '', externalSubject, context = [] }: Identity): string[] {
  return [displayName, externalSubject, ...context.flatMap(([, value]) => (typeof value === 'string' ? value : []))]
}

const indexed = ({ texts, ...entry }: SearchText): SearchEntry => ({ ...entry, terms: distinctTerms(texts) })

function distinctTerms(texts: string[]) {
  return [...new Set(texts.flatMap((text) => indexedTermsOf(text).map(({ term }) => term)))].slice(0, maxTerms)
}

const isRecent = (readAt: number) => performance.now() - readAt < maxAgeMs
