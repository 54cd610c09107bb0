import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { inWorkspace } from '../errors.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import { whileHeld } from '../mongodb/leases.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataStore } from './data-store.ts'
import type { Deleted, DeletionStore } from './deletion-store.ts'
import { type DeletionKind, hiddenMs, type RemovalStage } from './model.ts'
import type { Removal, RemovalStore } from './removal-store.ts'
import type { PacedRemoval, RemovalList, Removals } from './removals.ts'

/**
 * Time in milliseconds after which another core continues the deletion if its first step has not
 * ended.
 */
const firstLeaseMs = 2_000
/** Pause in milliseconds before the next conversations are hidden. */
const moreAfterMs = 200
/** Pause in milliseconds while conversations are removed. */
const waitMs = 5_000
/** Maximum number of unfinished removals of conversations of one workspace. */
const maxOpen = 8
const batch = 1_000

/** Kinds of objects of which cores keep the state. */
const announced: DeletionKind[] = ['installation', 'connection', 'subscription']

const deletedBy = ({ kind, ids: [id = ''], workspaceId }: Removal): Deleted => ({
  kind: kind as DeletionKind,
  id,
  workspaceId,
})

/**
 * The removal of a workspace, connection, installation or lead subscription. Hiding marks the
 * object, and the check marks what earlier calls have added. Separate removals remove the
 * conversations.
 */
export function createObjectList(dependencies: {
  store: DeletionStore
  removals: Pick<RemovalStore, 'countOpen'>
  begin: Removals['begin']
  data: Pick<DataStore, 'partsOfSession'>
  factStore: Pick<ConversationFactsStore, 'sessionsOf'>
  paced: PacedRemoval
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
}): RemovalList & Required<Pick<RemovalList, 'restore'>> & { mark(deleted: Deleted): Promise<boolean> } {
  const { store, removals, begin, data, factStore, paced, wakeups } = dependencies

  async function mark(deleted: Deleted): Promise<boolean> {
    const known = await store.idsIn(deleted, announced)
    const isNew = await wakeups.changing(known, () => store.mark(deleted))
    const late = (await store.idsIn(deleted, announced)).filter((id) => !known.includes(id))
    await wakeups.stateChanged(...late)
    return isNew
  }

  /** Undoes the mark of a workspace. */
  const restore = async (deleted: Deleted) =>
    wakeups.changing(await store.idsIn(deleted, announced), () => store.restore(deleted))

  const removeConversations = (workspaceId: string, ids: string[]) =>
    begin({ workspaceId, kind: 'conversations', ids, isDeletion: true })

  /**
   * Begins to remove the next conversations of the connections. Returns the pause in milliseconds
   * before the next call; undefined when no conversation is left.
   */
  async function removeByConnection({ workspaceId, lease }: Removal, connectionIds: string[]) {
    if ((await removals.countOpen(workspaceId, lease.id)) >= maxOpen) return waitMs
    const visible = await store.visibleConversations(connectionIds, batch)
    if (visible.length === 0) return (await store.hasConversations(connectionIds)) ? waitMs : undefined
    await removeConversations(workspaceId, visible)
    return moreAfterMs
  }

  /**
   * Begins to remove the conversations of an installation. A conversation with sessions of another
   * installation stays. Only its sessions of this installation are removed. Returns the pause in
   * milliseconds before the next call; undefined when no session is left.
   */
  async function removeBySession(workspaceId: string, siteKey: string) {
    const sessions = await store.sessionsOn(siteKey, batch)
    if (sessions.length === 0) return undefined
    const conversationIds = [...new Set(sessions.map(({ conversationId }) => conversationId))]
    const others = Map.groupBy(
      (await factStore.sessionsOf(conversationIds)).filter(({ publicSiteKey }) => publicSiteKey !== siteKey),
      ({ conversationId }) => conversationId,
    )
    const { visible, missing } = await store.stateOf(conversationIds)
    const gone = new Set(missing)
    await paced.remove({
      items: sessions.filter(({ conversationId }) => gone.has(conversationId) || others.has(conversationId)),
      partsOf: (group) =>
        group.flatMap((session) => data.partsOfSession(session, others.get(session.conversationId)?.[0]?.sessionId)),
    })
    const own = visible.filter((conversationId) => !others.has(conversationId))
    if (own.length > 0) await removeConversations(workspaceId, own)
    return waitMs
  }

  async function pauseOf(removal: Removal, deleted: Deleted): Promise<number | undefined> {
    if (deleted.kind === 'subscription') return undefined
    if (deleted.kind === 'installation') return removeBySession(removal.workspaceId, deleted.id)
    return removeByConnection(removal, await store.idsIn(deleted, ['connection']))
  }

  return {
    mark,
    hiddenMs,
    removesLate: false,
    restore: (removal) => restore(deletedBy(removal)),
    hide: async (removal) => void (await mark(deletedBy(removal))),
    check: async (removal) => ((await mark(deletedBy(removal))) ? undefined : removal.ids),

    async next(removal) {
      const deleted = deletedBy(removal)
      const pauseMs = await pauseOf(removal, deleted)
      if (pauseMs !== undefined) return { waitMs: pauseMs }
      const parts = await store.partsOf(deleted)
      return { items: removal.ids, partsOf: () => parts }
    },
  }
}

export function createDeletions(dependencies: {
  store: Pick<DeletionStore, 'workspaceOf'>
  removalStore: Pick<RemovalStore, 'insert' | 'turn' | 'advance'>
  removals: Pick<Removals, 'runStep'>
  list: ReturnType<typeof createObjectList>
  plannedIds: PlannedIds
  now: () => number
}) {
  const { store, removalStore, removals, list, plannedIds, now } = dependencies

  /** Returns the workspace of an object. Errors: those of `begin`. */
  async function workspaceOf(kind: DeletionKind, id: string, scope: string | undefined): Promise<string> {
    const code = kind === 'subscription' ? ErrorCode.SUBSCRIPTION_NOT_FOUND : ErrorCode.NOT_FOUND
    const found = await store.workspaceOf(kind, id)
    return inWorkspace(found === undefined ? undefined : { workspaceId: found }, scope, code).workspaceId
  }

  return {
    workspaceOf,
    /**
     * Deletes an object with everything that belongs to it. When the call resolves, no call finds
     * the object any more, and its visitors are refused. A repeated call changes nothing. Errors:
     * `NotFound`, or `SubscriptionNotFound` for a subscription, if the object is unknown or in
     * another workspace.
     */
    async begin(kind: DeletionKind, id: string, scope: string | undefined): Promise<void> {
      const removalId = plannedIds('rmv', kind, id)
      const workspaceId = await workspaceOf(kind, id, scope)
      const removal = { removalId, workspaceId, kind, ids: [id], stage: 'marking' as const }
      const until = new Date(now() + firstLeaseMs)
      const begun =
        (await removalStore.insert(removal, until)) ??
        (await removalStore.turn(removalId, ['restoring'], 'marking', until))
      // A repeated call announces the deletion again, because the process of the first call may
      // have died before its announcement.
      await (begun ? removals.runStep(begun) : list.mark({ kind, id, workspaceId }))
    },

    /**
     * Undoes the deletion of a workspace of which nothing was removed. Its objects are as before, but
     * sessions that the deletion ended stay ended. Changes nothing if the workspace is not deleted. Errors:
     * `NotFound`, also if the removal has begun.
     */
    async undo(id: string, scope: string | undefined): Promise<void> {
      await workspaceOf('workspace', id, scope)
      const removalId = plannedIds('rmv', 'workspace', id)
      const from: RemovalStage[] = ['marking', 'checking', 'restoring']
      const undone = await removalStore.turn(removalId, from, 'restoring', new Date(now() + firstLeaseMs))
      if (!undone) return
      await list.restore(undone)
      // A step of the deletion that another core still runs may mark objects. So they are restored again.
      await whileHeld(removalStore.advance(undone, 'restoring', new Date(now() + hiddenMs)))
    },
  }
}

export type Deletions = ReturnType<typeof createDeletions>
