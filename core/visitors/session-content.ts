import type { ConversationStore } from '../conversations/conversation-store.ts'
import type { EventStore } from '../log/event-store.ts'
import type { ReplayWindow } from '../log/replay-window.ts'
import type { Grants } from './grants.ts'
import type { Session } from './session-store.ts'

/** What a browser is given (specification, section 2.2). */
export interface SessionContent {
  sessionId: string
  conversationId: string
  accessGrant: string
  expiresAt: Date
  renewAfter: Date
  renewalToken: string
  replay: Replay
  continuityState: ContinuityState
  identityState: 'anonymous' | 'verified'
  /** Of a verified visitor, when the assertion named one. */
  displayName?: string
}

export type ContinuityState = 'new' | 'continued' | 'reset'

export interface Replay {
  state: 'ready' | 'reset_required'
  epoch: string
  lastSequence: number
  oldestSequence: number
}

/** When a grant begins and ends, in seconds since 1970. */
export interface GrantTimes {
  issuedAt: number
  expiresAt: number
}

/** What a session content is made from again at a repeat: everything but its credentials. */
export interface Issued extends GrantTimes {
  sessionId: string
  conversationId: string
  origin: string
  generation: number
  replay: Replay
  continuityState: ContinuityState
  identity?: { displayName?: string }
}

export interface Repeatable<T> {
  content: T
  replayed: boolean
}

export interface SessionContents {
  /** What is stored of an answer, for a session as it is now. */
  issue(
    session: Session,
    grant: GrantTimes & { generation: number },
    continuity: { state: ContinuityState; replay?: Replay },
  ): Promise<Issued>
  /** Credentials are signed and derived again, so that a repeat gets the very same ones and none is stored. */
  contentOf(issued: Issued): Promise<SessionContent>
  /** Whether a stream of the conversation can be resumed from the last seen event, and where its log stands. */
  replayOf(conversationId: string, lastSeenEventId?: string): Promise<Replay>
}

/** Session content: put together from what is stored, with credentials that are not (contract, section 2). */
export function createSessionContents(dependencies: {
  grants: Pick<Grants, 'sign' | 'renewalToken'>
  conversations: Pick<ConversationStore, 'find'>
  events: Pick<EventStore, 'ends'>
  replayWindow: Pick<ReplayWindow, 'oldest' | 'judge'>
}): SessionContents {
  const { grants, conversations, events, replayWindow } = dependencies

  async function replayOf(conversationId: string, lastSeenEventId?: string): Promise<Replay> {
    const [[conversation], ends, oldestSequence] = await Promise.all([
      conversations.find([conversationId]),
      events.ends([conversationId], { committed: true }),
      replayWindow.oldest(conversationId),
    ])
    const epoch = conversation?.epoch ?? ''
    const lastSequence = ends.get(conversationId)?.sequence ?? 0
    const start = lastSeenEventId === undefined ? {} : { lastEventId: lastSeenEventId }
    const { state } = await replayWindow.judge(conversationId, { epoch, head: lastSequence, start })
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
        ...(identity && {
          identity: identity.displayName === undefined ? {} : { displayName: identity.displayName },
        }),
      }
    },

    async contentOf({ sessionId, conversationId, replay, continuityState, ...issued }) {
      const { issuedAt, expiresAt, generation, origin, identity } = issued
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
        renewalToken: grants.renewalToken(sessionId, generation),
        identityState: identity ? 'verified' : 'anonymous',
        ...identity,
      }
    },
  }
}

/** A grant that begins now: it ends after its lifetime, or with its session. Settings in seconds. */
export function grantTimes(now: number, lifetime: number, endsAt: Date): GrantTimes {
  const issuedAt = Math.floor(now / 1000)
  return { issuedAt, expiresAt: Math.min(issuedAt + lifetime, Math.floor(endsAt.getTime() / 1000)) }
}
