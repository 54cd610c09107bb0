import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { inWorkspace } from '../errors.ts'
import type { PlannedIds } from '../keys/keyring.ts'
import type { Session } from '../visitors/model.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { ConversationFactsStore } from './conversation-facts-store.ts'
import type { DataRemoval } from './data-removal-store.ts'
import type { DeletionStore } from './deletion-store.ts'
import { type DeletionKind, hiddenMs, maxCallMs, type Removal, type RemovalStage } from './model.ts'
import type { PacedRemoval } from './paced-removal.ts'
import type { RemovalStore } from './removal-store.ts'

type DeletionStage = Exclude<RemovalStage, 'removed'>

export interface Deletions {
  /**
   * Deletes an object with everything that belongs to it. When the call resolves, no call finds
   * the object any more, and its visitors are refused. A repeated call changes nothing. Errors:
   * `NotFound`, or `SubscriptionNotFound` for a subscription, if the object is unknown or in
   * another workspace.
   */
  begin(kind: DeletionKind, id: string, scope: string | undefined): Promise<void>
  /** Returns the workspace of an object. Errors: those of `begin`. */
  workspaceOf(kind: DeletionKind, id: string, scope: string | undefined): Promise<string>
  /** Runs the due step of a deletion. The last one, `removed`, is that of every removal. */
  runStep(removal: Removal & { stage: DeletionStage }): Promise<void>
}

/**
 * Time in milliseconds after which another core continues the deletion if its first step has not
 * ended.
 */
const firstLeaseMs = 2_000
/** Pause in milliseconds before the next part of the data is hidden or removed. */
const moreAfterMs = 200
/** Pause in milliseconds while `removals.ts` removes conversations. */
const waitMs = 5_000
/** Maximum number of unfinished removals of conversations of one workspace. */
const maxOpen = 8
const conversationBatch = 1_000
const sessionBatch = 1_000
const chunk = 100

/**
 * Deletes workspaces, connections, installations and lead subscriptions in three steps. Each step
 * can be repeated.
 *
 * 1. `marking` hides the object.
 * 2. `checking`, after every earlier call has ended, hides what these calls have added.
 * 3. `removing` removes what belongs to the object. `removals.ts` removes the conversations, and
 *    ends the deletion after `maxCallMs`, when the wake-ups with its ids are old.
 */
export function createDeletions(dependencies: {
  store: DeletionStore
  removals: RemovalStore
  /** Records the removal of conversations, and hides them. */
  removeConversations: (workspaceId: string, conversationIds: string[]) => Promise<void>
  data: DataRemoval
  factStore: Pick<ConversationFactsStore, 'sessionsOf'>
  paced: PacedRemoval
  plannedIds: PlannedIds
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged'>
  now: () => number
}): Deletions {
  const { store, removals, removeConversations, data, factStore, paced, plannedIds, wakeups, now } = dependencies
  const later = (ms: number) => new Date(now() + ms)

  const deletedBy = ({ kind, ids: [id = ''], workspaceId }: Removal) => ({
    kind: kind as DeletionKind,
    id,
    workspaceId,
  })

  async function mark(removal: Removal): Promise<boolean> {
    const deleted = deletedBy(removal)
    const known = await store.idsIn(deleted)
    const isNew = await wakeups.changing(known, () => store.mark(deleted))
    const late = (await store.idsIn(deleted)).filter((id) => !known.includes(id))
    await wakeups.stateChanged(...late)
    return isNew
  }

  /**
   * Begins to remove the next conversations of the connections. Returns the pause in milliseconds
   * before the next call; undefined when no conversation is left.
   */
  async function removeByConnection({ workspaceId, removalId }: Removal, connectionIds: string[]) {
    if ((await removals.countOpen(workspaceId, removalId)) >= maxOpen) return waitMs
    for (const connectionId of connectionIds) {
      const visible = await store.visibleConversations(connectionId, conversationBatch)
      if (visible.length === 0) continue
      await removeConversations(workspaceId, visible)
      return moreAfterMs
    }
    return (await store.hasConversations(connectionIds)) ? waitMs : undefined
  }

  /**
   * Begins to remove the conversations of an installation. A conversation with sessions of another
   * installation stays. Only its sessions of this installation are removed. Returns the pause in
   * milliseconds before the next call; undefined when no session is left.
   */
  async function removeBySession(workspaceId: string, siteKey: string) {
    const sessions = await store.sessionsOn([siteKey], sessionBatch)
    if (sessions.length === 0) return undefined
    const byConversation = Map.groupBy(sessions, ({ conversationId }) => conversationId)
    const others = Map.groupBy(
      (await factStore.sessionsOf([...byConversation.keys()])).filter(({ publicSiteKey }) => publicSiteKey !== siteKey),
      ({ conversationId }) => conversationId,
    )
    const { visible, missing } = await store.stateOf([...byConversation.keys()])
    const detach = async (conversationId: string, heir: Session | undefined) => {
      for (const session of byConversation.get(conversationId) ?? []) await paced.session(session, heir?.sessionId)
    }
    for (const conversationId of missing) await detach(conversationId, undefined)
    for (const [conversationId, theirs] of others) await detach(conversationId, theirs[0])
    const own = visible.filter((conversationId) => !others.has(conversationId))
    for (let start = 0; start < own.length; start += conversationBatch)
      await removeConversations(workspaceId, own.slice(start, start + conversationBatch))
    return waitMs
  }

  /**
   * Removes the next part of the data. Returns the pause in milliseconds before the next call;
   * undefined when everything has been removed.
   */
  async function removeNext(removal: Removal): Promise<number | undefined> {
    const deleted = deletedBy(removal)
    const { kind, id, workspaceId } = deleted
    if (kind === 'subscription') {
      if ((await data.removeDeliveries({ subscriptionId: id }, chunk)) > 0) return moreAfterMs
    } else if (kind === 'installation') {
      const pause = await removeBySession(workspaceId, id)
      if (pause !== undefined) return pause
    } else {
      const pause = await removeByConnection(removal, await store.connectionsIn(deleted))
      if (pause !== undefined) return pause
      // Sessions whose conversation was never stored.
      const left = await store.sessionsOn(await store.siteKeysIn(deleted), chunk)
      for (const session of left) await paced.session(session, undefined)
      if (left.length > 0) return moreAfterMs
    }
    if (kind === 'workspace') {
      const leadIds = await store.leadsIn(id, chunk)
      if (leadIds.length > 0) await paced.leads(leadIds)
      const rest = (await data.removeDeliveries({ workspaceId: id }, chunk)) + (await store.removeRest(id, chunk))
      if (leadIds.length + rest > 0) return moreAfterMs
    }
    await store.remove(deleted)
    return undefined
  }

  const steps: Record<DeletionStage, (removal: Removal) => Promise<void>> = {
    async marking(removal) {
      await mark(removal)
      await removals.advance(removal, 'checking', later(hiddenMs))
    },

    async checking(removal) {
      const stage = (await mark(removal)) ? 'checking' : 'removing'
      await removals.advance(removal, stage, later(stage === 'checking' ? hiddenMs : 0))
    },

    async removing(removal) {
      const pause = await removeNext(removal)
      await removals.advance(removal, pause === undefined ? 'removed' : 'removing', later(pause ?? maxCallMs))
    },
  }

  async function workspaceOf(kind: DeletionKind, id: string, scope: string | undefined): Promise<string> {
    const code = kind === 'subscription' ? ErrorCode.SUBSCRIPTION_NOT_FOUND : ErrorCode.NOT_FOUND
    const found = await store.workspaceOf(kind, id)
    return inWorkspace(found === undefined ? undefined : { workspaceId: found }, scope, code).workspaceId
  }

  return {
    workspaceOf,

    async begin(kind, id, scope) {
      const removal = {
        removalId: plannedIds('rmv', kind, id),
        workspaceId: await workspaceOf(kind, id, scope),
        kind,
        ids: [id],
        stage: 'marking' as const,
      }
      const inserted = await removals.insert(removal, later(firstLeaseMs))
      // A repeated call announces the deletion again, because the process of the first call may
      // have died before its announcement.
      await (inserted ? steps.marking(inserted) : mark({ ...removal, fencingToken: 0 }))
    },

    async runStep(removal) {
      await steps[removal.stage](removal)
    },
  }
}
