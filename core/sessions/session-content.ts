import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import type { EventStore } from '../log/event-store.ts'
import type { ReplayWindow } from '../streams/replay-window.ts'
import type { Grants } from './grants.ts'
import type {
  ContinuityState,
  ConversationRecords,
  GrantTimes,
  Issued,
  Replay,
  Session,
  SessionContent,
} from './model.ts'

export interface SessionContents {
  /** Returns the part of a session's content that is stored. */
  issue(
    session: Session,
    grant: GrantTimes & { generation: number },
    continuity: { state: ContinuityState; replay?: Replay },
  ): Promise<Issued>
  /**
   * Adds the credentials to a stored content. They are derived and never stored, so a repeated
   * operation gets the same credentials.
   */
  contentOf(issued: Issued): Promise<SessionContent>
  /**
   * Returns the end of the log, and whether a stream can resume after the last event that the
   * browser has seen.
   */
  replayOf(conversationId: string, lastSeenEventId?: string): Promise<Replay>
}

/** Creates session contents from stored data and derived credentials (contract, section 2). */
export function createSessionContents(dependencies: {
  grants: Pick<Grants, 'sign' | 'renewalToken'>
  conversations: Pick<ConversationRecords, 'find'>
  events: Pick<EventStore, 'ends'>
  replayWindow: Pick<ReplayWindow, 'oldest' | 'resolveStart'>
}): SessionContents {
  const { grants, conversations, events, replayWindow } = dependencies

  // Many browsers renew at once after an outage, so concurrent renewals share queries.
  const findConversation = createBatchLoader(async (ids) =>
    byKey(await conversations.find(ids), ({ conversationId }) => conversationId),
  )
  const endOf = createBatchLoader((ids) => events.ends(ids, { committed: true }))

  async function replayOf(conversationId: string, lastSeenEventId?: string): Promise<Replay> {
    const [conversation, end] = await Promise.all([findConversation(conversationId), endOf(conversationId)])
    const epoch = conversation?.epoch ?? ''
    const lastSequence = end?.sequence ?? 0
    const oldestSequence = await replayWindow.oldest(conversationId, lastSequence)
    const start = lastSeenEventId === undefined ? {} : { lastEventId: lastSeenEventId }
    const { state } = await replayWindow.resolveStart(conversationId, { epoch, head: lastSequence, start })
    return { state, epoch, lastSequence, oldestSequence }
  }

  return {
    replayOf,

    async issue({ sessionId, conversationId, origin, identity }, grant, { state, replay }) {
      return {
        sessionId,
        conversationId,
        origin,
        ...grant,
        replay: replay ?? (await replayOf(conversationId)),
        continuityState: state,
        identity: identity && { displayName: identity.displayName },
      }
    },

    async contentOf({ sessionId, conversationId, replay, continuityState, ...issued }) {
      const { issuedAt, expiresAt, renewableUntil, generation, origin, identity } = issued
      return {
        sessionId,
        conversationId,
        replay,
        continuityState,
        accessGrant: await grants.sign({
          sid: sessionId,
          org: origin,
          iat: issuedAt,
          exp: expiresAt,
        }),
        expiresAt: new Date(expiresAt * 1000),
        renewAfter: new Date((issuedAt + Math.floor(((expiresAt - issuedAt) * 2) / 3)) * 1000),
        renewableUntil: new Date(renewableUntil * 1000),
        renewalToken: grants.renewalToken(sessionId, generation),
        identityState: identity ? 'verified' : 'anonymous',
        ...identity,
      }
    },
  }
}
