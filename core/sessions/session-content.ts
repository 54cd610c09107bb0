import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { perCore } from '../core.ts'
import { findConversations } from '../log/conversation-store.ts'
import { eventsOf } from '../log/event-store.ts'
import { replayWindowOf } from '../streams/replay-window.ts'
import { grantsOf } from './grants.ts'
import type { ContinuityState, GrantTimes, Issued, Replay, Session, SessionContent } from './model.ts'

/** Creates session contents from stored data and derived credentials (contract, section 2). */
export const sessionContentsOf = perCore((core) => {
  // Many browsers renew at once after an outage, so concurrent renewals share queries.
  const findConversation = createBatchLoader(async (ids) =>
    byKey(await findConversations(core, ids), ({ conversationId }) => conversationId),
  )
  const endOf = createBatchLoader((ids) => eventsOf(core).ends(ids, { committed: true }))

  /** Returns the end of the log, and whether a stream can resume after the last event that the browser has seen. */
  async function replayOf(conversationId: string, lastSeenEventId?: string): Promise<Replay> {
    const [conversation, end] = await Promise.all([findConversation(conversationId), endOf(conversationId)])
    const epoch = conversation?.epoch ?? ''
    const lastSequence = end?.sequence ?? 0
    const oldestSequence = await replayWindowOf(core).oldest(conversationId, lastSequence)
    const start = lastSeenEventId === undefined ? {} : { lastEventId: lastSeenEventId }
    const { state } = await replayWindowOf(core).resolveStart(conversationId, { epoch, head: lastSequence, start })
    return { state, epoch, lastSequence, oldestSequence }
  }

  return {
    replayOf,
    /** Returns the part of a session's content that is stored. */
    async issue(
      { sessionId, conversationId, origin, identity }: Session,
      grant: GrantTimes & { generation: number },
      { state, replay }: { state: ContinuityState; replay?: Replay },
    ): Promise<Issued> {
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

    /** Adds the credentials, which are derived and never stored, so that a repeat gets the same ones. */
    async contentOf(issued: Issued): Promise<SessionContent> {
      const { issuedAt, expiresAt, renewableUntil, generation, origin, identity, ...content } = issued
      const { sessionId } = content
      return {
        ...content,
        accessGrant: await grantsOf(core).sign({ sid: sessionId, org: origin, iat: issuedAt, exp: expiresAt }),
        expiresAt: new Date(expiresAt * 1000),
        renewAfter: new Date((issuedAt + Math.floor(((expiresAt - issuedAt) * 2) / 3)) * 1000),
        renewableUntil: new Date(renewableUntil * 1000),
        renewalToken: grantsOf(core).renewalToken(sessionId, generation),
        identityState: identity ? 'verified' : 'anonymous',
        ...identity,
      }
    },
  }
})
