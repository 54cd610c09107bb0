import type { Document } from 'mongodb'
// @ts-expect-error: the driver has no types for its internal modules.
import { Connection } from 'mongodb/lib/cmap/connection.js'
import { testClient } from '../../test/support/test-database.ts'
import { endOverdueTyping } from '../conversations/typing.ts'
import { sweepTransient } from '../log/transient-sweep.ts'
import { runDueRemovals } from '../privacy/removals.ts'
import { sweepOldData } from '../privacy/retention.ts'
import { sweepWakeups } from '../wakeups/wakeups.ts'
import { type Retention, retentionKinds } from '../workspaces/model.ts'
import { retentionOf } from '../workspaces/workspaces.ts'
import type { TestCores } from './cores.ts'
import { flushAll } from './visitor-marks.ts'

/** The raw documents of a database, by collection. */
type Raw = Map<string, Document[]>

interface Scan {
  raw: Raw
  now: number
  /** Retention periods by workspace id, in milliseconds. `Infinity` for data that is kept for ever. */
  periods: Map<string, Record<(typeof retentionKinds)[number], number>>
}

type IsOverdue = (document: Document, scan: Scan) => boolean

const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/**
 * The rule of each collection: whether a raw document is older than allowed. A new collection fails
 * the tests until it has a rule.
 */
const rules: Record<string, IsOverdue> = {
  conversations(conversation, scan) {
    const { conversations, emptySessions } = periodsOf(conversation, scan)
    const theirs = ({ conversationId }: Document) => conversationId === conversation._id
    const messages = scan.raw.get('events')!.filter((event) => theirs(event) && event.message)
    const ends = scan.raw
      .get('sessions')!
      .filter(theirs)
      .map(({ renewableUntil }) => renewableUntil)
    const times = [...messages.map(({ occurredAt }) => occurredAt), ...ends, conversation.createdAt]
    const isUsed = messages.length > 0 || scan.raw.get('leads')!.some(theirs)
    return Math.max(...times.map(Number)) < scan.now - (isUsed ? conversations : emptySessions)
  },
  sessions(session, scan) {
    const { emptySessions } = periodsOf(session, scan)
    const { conversationId } = session
    const writes = (event: Document) => event.conversationId === conversationId && event.message
    const writers = scan.raw
      .get('events')!
      .filter(writes)
      .map(({ message }) => message.sessionId)
    const others = scan.raw.get('sessions')!.filter((other) => other.conversationId === conversationId)
    // The newest session stays as long as its conversation, because it links the conversation to the visitor.
    const isNewest = others.every(({ createdAt }) => createdAt <= session.createdAt) && writers.length > 0
    const isForm = scan.raw.get('leads')!.some((lead) => lead.conversationId === conversationId)
    if (writers.includes(session._id) || isNewest || isForm) return false
    return session.renewableUntil.getTime() < scan.now - emptySessions
  },
  events: (event, { raw }) => !raw.get('conversations')!.some(({ _id }) => _id === event.conversationId),
  searchEntries({ _id, conversationId }, { raw }) {
    const has = (collection: string, id: string) => raw.get(collection)!.some((each) => each._id === id)
    if (conversationId === undefined) return !has('conversations', _id.split(':')[0])
    return !has('conversations', conversationId) || !(has('leads', _id) || has('sessions', _id))
  },
  feedEntries: ({ conversationId, leadId }, { raw }) => {
    const isGone = (collection: string, id?: string) =>
      id !== undefined && !raw.get(collection)!.some(({ _id }) => _id === id)
    return isGone('conversations', conversationId) || isGone('leads', leadId)
  },
  typing: (turn, { raw }) => !raw.get('conversations')!.some(({ _id }) => _id === turn.conversationId),
  subjects: (subject, { raw }) => !raw.get('conversations')!.some(({ _id }) => _id === subject.conversationId),
  commands: (command, { raw }) => !raw.get('sessions')!.some(({ _id }) => _id === command.sessionId),
  'screenshots.files': (file, { raw }) => !hasCommandWith(file._id, raw),
  'screenshots.chunks': (part, { raw }) => !hasCommandWith(part.files_id, raw),
  leads: (lead, scan) => lead.createdAt < scan.now - periodsOf(lead, scan).leads,
  deliveries(delivery, scan) {
    const { heldDeliveries, audit } = periodsOf(delivery, scan)
    if (delivery.status === 'held' && delivery.updatedAt < scan.now - heldDeliveries) return true
    return delivery.requestedAt < scan.now - audit || !scan.raw.get('leads')!.some(({ _id }) => _id === delivery.leadId)
  },
  leadSubscriptions: (subscription, scan) =>
    subscription.audit.some(({ at }: Document) => at < scan.now - periodsOf(subscription, scan).audit),
  erasures: (erasure, scan) => erasure.finishedAt < scan.now - periodsOf(erasure, scan).audit,
  policyChanges: (change, scan) => change.at < scan.now - periodsOf(change, scan).audit,
  idempotency: (record, { raw, now }) =>
    record.expiresAt < now - dayMs &&
    (record.sessionIds ?? []).some((id: string) => !raw.get('sessions')!.some(({ _id }) => _id === id)),
  // The newest wake-up is removed only when there is another one.
  wakeups: ({ at, heads, changed }, { now }) => at < now - hourMs && heads.length + changed.length > 0,
  ...Object.fromEntries(
    [
      // The database removes these documents at the time that is stored in them (TTL index).
      ...['nonces', 'consoleSessions', 'tokens', 'signInLinks', 'signInAttempts', 'networkBans', 'pictures'],
      'operatorPresence',
      // These documents have no period. They are kept until they are removed explicitly.
      ...['visitors', 'teams', 'passkeys', 'suppressions', 'workspaces', 'connections', 'installations', 'keys'],
      ...['migrations', 'storeHistory', 'followers', 'locks', 'removals'],
    ].map((name) => [name, () => false]),
  ),
}

const hasCommandWith = (fileId: unknown, raw: Raw) =>
  raw
    .get('commands')!
    .some(({ uploads, screenshot }) =>
      [...uploads, ...(screenshot ? [screenshot] : [])].some((file: Document) => file.fileId === String(fileId)),
    )

const periodsOf = ({ workspaceId }: Document, { periods }: Scan) => periods.get(workspaceId)!

export const collectionsWithRule = Object.keys(rules)

/** Returns all raw documents that will be older than allowed in `inSeconds` seconds, as `collection: id`. */
export async function findOverdue(cores: TestCores, inSeconds = 0): Promise<string[]> {
  const raw: Raw = new Map(collectionsWithRule.map((collection) => [collection, []]))
  for (const collection of await testClient().db(cores.name).collections())
    raw.set(collection.collectionName, await collection.find().toArray())
  const workspaces = raw.get('workspaces')!
  const periods = new Map(workspaces.map(({ _id, retention }) => [String(_id), inMs(cores, { retention })]))
  const scan = { raw, now: cores.now() + inSeconds * 1000, periods }
  return [...raw].flatMap(([collection, documents]) =>
    documents.filter((each) => rules[collection]!(each, scan)).map(({ _id }) => `${collection}: ${_id}`),
  )
}

function inMs({ core }: TestCores, workspace: { retention?: Retention }) {
  const days = retentionOf(core, workspace)
  return Object.fromEntries(
    retentionKinds.map((kind) => [kind, days[kind] === 0 ? Number.POSITIVE_INFINITY : days[kind] * dayMs]),
  ) as Record<(typeof retentionKinds)[number], number>
}

/**
 * Sweeps every workspace and runs every step of every removal. Advances the clock between steps, so
 * that the leases of dead processes expire.
 */
export async function sweepAll(cores: TestCores, core = cores.core): Promise<void> {
  for (const seconds of [0, 3_700, 121, 31, 121, 31, 121, 3]) {
    await flushAll(cores)
    cores.advance(seconds)
    await endOverdueTyping(core)
    await sweepOldData(core)
    await runDueRemovals(core)
    await sweepTransient(core)
    await sweepWakeups(core)
  }
}

const asking = ['find', 'aggregate', 'distinct', 'update', 'delete', 'findAndModify', 'count']

/**
 * Calls `note` with each command of this process, until the returned function is called. Cores have
 * no command events.
 */
function observeCommands(note: (sent: { commandName: string; command: Document }) => void): () => void {
  const { command: send } = Connection.prototype
  Connection.prototype.command = function (namespace: unknown, command: Document, ...rest: unknown[]) {
    note({ commandName: Object.keys(command)[0]!, command })
    return send.call(this, namespace, command, ...rest)
  }
  return () => {
    Connection.prototype.command = send
  }
}

/**
 * Runs `act`. Returns the collections that its database commands read or change, and those commands that scan a whole
 * collection. Skips wake-ups, because a capped collection is read in the order of its inserts.
 */
export async function observeQueries(cores: TestCores, act: () => Promise<void>) {
  const asked: { name: string; command: Document }[] = []
  const note = ({ commandName: name, command }: { commandName: string; command: Document }) => {
    if (!asking.includes(name) || command[name] === 'wakeups') return
    // `explain` accepts only one write per command.
    const given = command.updates ?? command.deletes ?? []
    const writes: Document[] = given.documents ?? given
    const parts = writes.map((write) => ({ ...command, [command.updates ? 'updates' : 'deletes']: [write] }))
    for (const part of writes.length > 0 ? parts : [command]) asked.push({ name, command: part })
  }
  const restore = observeCommands(note)
  try {
    await act()
  } finally {
    restore()
  }
  const scans = new Set<string>()
  for (const { command } of asked) {
    const { lsid: _, $db: __, writeConcern: ___, readConcern: ____, txnNumber: _____, ...question } = command
    const explained = { explain: question, verbosity: 'queryPlanner' }
    const plan = await testClient().db(cores.name).command(explained, { ignoreUndefined: true })
    if (JSON.stringify(plan).includes('COLLSCAN')) scans.add(JSON.stringify(question))
  }
  return { collections: new Set(asked.map(({ name, command }) => command[name])), scans: [...scans] }
}
