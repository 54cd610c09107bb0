import type { Collection, Document } from 'mongodb'
import { type Core, dateOf } from '../core.ts'
import { inWorkspace, type Scope } from '../errors.ts'
import { whileHeld } from '../mongodb/leases.ts'
import { notDeleted, notErasing } from '../mongodb/not-erasing.ts'
import { findIds, hasDocument, idsOf } from '../mongodb/with-id.ts'
import { logoOf } from '../pictures/pictures.ts'
import { toSession } from '../sessions/session-store.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import {
  atOnce,
  deliveryPart,
  documents,
  leadPart,
  type Part,
  partsOfSession,
  sessionPart,
  sessionsIn,
} from './data-store.ts'
import { type DeletionKind, hiddenMs, type RemovalStage } from './model.ts'
import {
  advanceRemoval,
  beginRemoval,
  countOpenRemovals,
  insertRemoval,
  type Removal,
  type RemovalList,
  removeParts,
  runRemovalStep,
  turnRemoval,
} from './removals.ts'

/** Another core continues a deletion whose first step has not ended within this time. */
const firstLeaseMs = 2_000
/** Pause before the next conversations are hidden. */
const moreAfterMs = 200
const waitMs = 5_000
/** Maximum number of unfinished removals of conversations of one workspace. */
const maxOpen = 8
const batch = 1_000

/** Kinds of objects whose state cores keep. */
const announced: DeletionKind[] = ['installation', 'connection', 'subscription']

interface Deleted {
  kind: DeletionKind
  id: string
  workspaceId: string
}

const deletedBy = ({ kind, ids: [id = ''], workspaceId }: Removal): Deleted => ({
  kind: kind as DeletionKind,
  id,
  workspaceId,
})

interface ObjectDocument extends Document {
  _id: string
}

/** Returns what the deletion marks and removes, and what the mark sets. The deleted one is in the last. */
function objectsIn({ db }: Core, { kind, id, workspaceId }: Deleted) {
  const inWorkspace = kind === 'workspace' ? { workspaceId } : undefined
  const itself = (of: DeletionKind) => (kind === of ? { _id: id } : undefined)
  const inConnection = kind === 'connection' ? { workspaceId, connectionId: id } : undefined
  const objects = [
    {
      kind: 'installation',
      collection: db.installations,
      filter: inWorkspace ?? inConnection ?? itself('installation'),
      off: { enabled: false },
    },
    {
      kind: 'connection',
      collection: db.connections,
      filter: inWorkspace ?? itself('connection'),
      off: { status: 'disabled' },
      more: [{ $set: { statusVersion: { $add: ['$statusVersion', 1] } } }],
    },
    {
      kind: 'subscription',
      collection: db.leadSubscriptions,
      filter: inWorkspace ?? itself('subscription'),
      off: { status: 'disabled', disabledReason: 'operator', automatic: false },
      more: kind === 'subscription' ? [{ $unset: 'place' }] : [],
    },
    {
      kind: 'workspace',
      collection: db.workspaces,
      filter: itself('workspace'),
      off: {},
    },
  ]
  return objects.flatMap(({ collection, filter, ...rest }) =>
    filter ? [{ ...rest, filter, collection: collection as unknown as Collection<ObjectDocument> }] : [],
  )
}

async function idsIn(core: Core, deleted: Deleted, kinds: DeletionKind[]) {
  const found = objectsIn(core, deleted)
    .filter(({ kind }) => (kinds as string[]).includes(kind))
    .map(({ collection, filter }) => findIds(collection, filter))
  return (await Promise.all(found)).flat()
}

type RemovedBy = 'workspace id' | 'part' | 'object' | 'conversation' | 'its own end' | 'nothing'

/** What removes a workspace's documents. A new collection does not compile until it is named. */
const removedBy: Record<keyof Core['db'], RemovedBy> = {
  suppressions: 'workspace id',
  policyChanges: 'workspace id',
  erasures: 'workspace id',
  visitors: 'workspace id',
  consoleSessions: 'workspace id',
  signInLinks: 'workspace id',
  passkeys: 'workspace id',
  feedEntries: 'workspace id',
  pictures: 'workspace id',
  tokens: 'workspace id',
  deliveries: 'part',
  leads: 'part',
  teams: 'part',
  sessions: 'part',
  workspaces: 'object',
  connections: 'object',
  installations: 'object',
  leadSubscriptions: 'object',
  conversations: 'conversation',
  events: 'conversation',
  subjects: 'conversation',
  searchEntries: 'conversation',
  commands: 'conversation',
  idempotency: 'conversation',
  typing: 'its own end',
  nonces: 'its own end',
  networkBans: 'its own end',
  signInAttempts: 'its own end',
  operatorPresence: 'its own end',
  wakeups: 'its own end',
  removals: 'its own end',
  keys: 'nothing',
  followers: 'nothing',
  migrations: 'nothing',
}

const partsOfWorkspace = (core: Core, workspaceId: string) => [
  deliveryPart(core, { workspaceId }),
  leadPart(core, { workspaceId }),
  documents(core.db.teams, { _id: workspaceId }),
  ...Object.entries(removedBy)
    .filter(([, by]) => by === 'workspace id')
    .map(([name]) => documents(core.db[name as keyof Core['db']] as never, { workspaceId } as never)),
]

/** Returns what is removed after the conversations. The object itself is the last. */
export async function partsOfObject(core: Core, deleted: Deleted): Promise<Part[]> {
  const { kind, id } = deleted
  const connectionIds = await idsIn(core, deleted, ['connection'])
  const siteKeys = await idsIn(core, deleted, ['installation'])
  const { pictures, visitors } = core.db
  return [
    ...(kind === 'subscription' ? [deliveryPart(core, { subscriptionId: id })] : []),
    // Their conversation was never stored.
    sessionPart(core, { publicSiteKey: { $in: siteKeys } }),
    ...(kind === 'workspace' ? partsOfWorkspace(core, id) : []),
    documents(pictures, { workspaceId: deleted.workspaceId, owner: { $in: siteKeys.map(logoOf) } }),
    documents(visitors, { connectionId: { $in: connectionIds } }),
    atOnce(async () => {
      for (const { collection, filter } of objectsIn(core, deleted)) await collection.deleteMany(filter)
    }),
  ]
}

/** Marks an object and those in it, so that queries skip them. Returns whether any was marked now. */
async function markStored(core: Core, deleted: Deleted) {
  let marked = 0
  for (const { collection, filter, off, more = [] } of objectsIn(core, deleted)) {
    const before = Object.fromEntries(Object.keys(off).map((field) => [field, `$${field}`]))
    const set = { $set: { ...off, deleted: true, ...(deleted.kind === 'workspace' && { before }) } }
    const update = [set, ...more]
    marked += (await collection.updateMany({ ...filter, ...notDeleted }, update)).modifiedCount
  }
  return marked > 0
}

async function mark(core: Core, deleted: Deleted) {
  const wakeups = wakeupsOf(core)
  const known = await idsIn(core, deleted, announced)
  const isNew = await wakeups.changing(known, () => markStored(core, deleted))
  const late = (await idsIn(core, deleted, announced)).filter((id) => !known.includes(id))
  await wakeups.stateChanged(...late)
  return isNew
}

/** Objects in the workspace that were deleted before it stay deleted. */
async function restore(core: Core, deleted: Deleted) {
  await wakeupsOf(core).changing(await idsIn(core, deleted, announced), async () => {
    for (const { collection, filter, off } of objectsIn(core, deleted))
      await collection.updateMany({ ...filter, before: { $exists: true } }, [
        { $unset: Object.keys(off).concat('deleted') },
        { $replaceWith: { $mergeObjects: ['$$ROOT', '$before'] } },
        { $unset: 'before' },
      ])
  })
}

const removeConversations = (core: Core, workspaceId: string, ids: string[]) =>
  beginRemoval(core, { workspaceId, kind: 'conversations', ids, isDeletion: true })

/** Begins to remove conversations. Returns the pause before the next call; undefined when none is left. */
async function removeByConnection(core: Core, { workspaceId, lease }: Removal, connectionIds: string[]) {
  if ((await countOpenRemovals(core, workspaceId, lease.id)) >= maxOpen) return waitMs
  const { conversations } = core.db
  const theirs = { connectionId: { $in: connectionIds } }
  const visible = await findIds(conversations, { ...theirs, ...notErasing }, { limit: batch })
  if (visible.length === 0) return (await hasDocument(conversations, theirs)) ? waitMs : undefined
  await removeConversations(core, workspaceId, visible)
  return moreAfterMs
}

/** Like `removeByConnection`. Of a conversation with sessions elsewhere, only its own are removed. */
async function removeBySession(core: Core, workspaceId: string, siteKey: string) {
  const sessions = (await core.db.sessions.find({ publicSiteKey: siteKey }).limit(batch).toArray()).map(toSession)
  if (sessions.length === 0) return undefined
  const conversationIds = [...new Set(sessions.map(({ conversationId }) => conversationId))]
  const others = Map.groupBy(
    (await sessionsIn(core, conversationIds)).filter(({ publicSiteKey }) => publicSiteKey !== siteKey),
    ({ conversationId }) => conversationId,
  )
  const stored = await core.db.conversations
    .find({ _id: { $in: conversationIds } }, { projection: { erasing: 1 } })
    .toArray()
  const gone = new Set(conversationIds).difference(new Set(idsOf(stored)))
  await removeParts(core, {
    items: sessions.filter(({ conversationId }) => gone.has(conversationId) || others.has(conversationId)),
    partsOf: (group) =>
      group.flatMap((session) => partsOfSession(core, session, others.get(session.conversationId)?.[0]?.sessionId)),
  })
  const own = idsOf(stored.filter(({ _id, erasing }) => erasing === undefined && !others.has(_id)))
  if (own.length > 0) await removeConversations(core, workspaceId, own)
  return waitMs
}

async function pauseOf(core: Core, removal: Removal, deleted: Deleted) {
  if (deleted.kind === 'subscription') return undefined
  if (deleted.kind === 'installation') return removeBySession(core, removal.workspaceId, deleted.id)
  return removeByConnection(core, removal, await idsIn(core, deleted, ['connection']))
}

/**
 * The removal of an object. Hiding marks it, and the check marks what earlier calls have added. Separate
 * removals remove the conversations.
 */
export const objectList: RemovalList = {
  hiddenMs,
  removesLate: false,
  restore: (core, removal) => restore(core, deletedBy(removal)),
  hide: async (core, removal) => void (await mark(core, deletedBy(removal))),
  check: async (core, removal) => ((await mark(core, deletedBy(removal))) ? undefined : removal.ids),

  async next(core, removal) {
    const deleted = deletedBy(removal)
    const pauseMs = await pauseOf(core, removal, deleted)
    if (pauseMs !== undefined) return { waitMs: pauseMs }
    const parts = await partsOfObject(core, deleted)
    return { items: removal.ids, partsOf: () => parts }
  },
}

/** Finds the object even if its deletion has begun. Errors: those of `deleteObject`. */
export async function workspaceOfObject(core: Core, kind: DeletionKind, id: string, scope: Scope): Promise<string> {
  const code = kind === 'subscription' ? 'SubscriptionNotFound' : 'NotFound'
  const [object] = objectsIn(core, { kind, id, workspaceId: id }).filter((each) => each.kind === kind)
  const found = await object!.collection.findOne({ _id: id }, { projection: { workspaceId: 1 } })
  const workspaceId = kind === 'workspace' ? found?._id : found?.workspaceId
  return inWorkspace(workspaceId === undefined ? undefined : { workspaceId }, scope, code).workspaceId
}

const removalIdOf = ({ plannedIds }: Core, kind: DeletionKind, id: string) => plannedIds('rmv', kind, id)

/**
 * Deletes an object with everything in it. When the call resolves, no call finds it, and its visitors are
 * refused. Can be repeated. Errors: `NotFound`, or `SubscriptionNotFound`, also for an object of another
 * workspace.
 */
export async function deleteObject(core: Core, kind: DeletionKind, id: string, scope: Scope) {
  const removalId = removalIdOf(core, kind, id)
  const workspaceId = await workspaceOfObject(core, kind, id, scope)
  const removal = { removalId, workspaceId, kind, ids: [id], stage: 'marking' as const }
  const until = dateOf(core, firstLeaseMs)
  const begun =
    (await insertRemoval(core, removal, until)) ?? (await turnRemoval(core, removalId, ['restoring'], 'marking', until))
  // The process of the first call may have died before its announcement.
  await (begun ? runRemovalStep(core, begun) : mark(core, { kind, id, workspaceId }))
}

/**
 * Undoes the deletion of a workspace of which nothing was removed. Ended sessions stay ended. Changes
 * nothing without a deletion. Errors: `NotFound`, also if the removal has begun.
 */
export async function undoDeletion(core: Core, workspaceId: string, scope: Scope) {
  await workspaceOfObject(core, 'workspace', workspaceId, scope)
  const removalId = removalIdOf(core, 'workspace', workspaceId)
  const from: RemovalStage[] = ['marking', 'checking', 'restoring']
  const undone = await turnRemoval(core, removalId, from, 'restoring', dateOf(core, firstLeaseMs))
  if (!undone) return
  await restore(core, deletedBy(undone))
  // A running step on another core may still mark objects, so they are restored again.
  await whileHeld(advanceRemoval(core, undone, 'restoring', dateOf(core, hiddenMs)))
}
