import type { ConversationStore } from '../conversations/conversation-store.ts'
import type { EventStore } from '../log/event-store.ts'
import type { ReplayWindow } from '../log/replay-window.ts'
import type { Grants } from './grants.ts'
import type { Session } from './session-store.ts'

/** The session as a browser receives it (specification, section 2.2). */
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
  /** Set for a verified visitor when the assertion has a name. */
  displayName?: string
}

export type ContinuityState = 'new' | 'continued' | 'reset'

export interface Replay {
  state: 'ready' | 'reset_required'
  epoch: string
  lastSequence: number
  oldestSequence: number
}

/** Start and end of a grant, in seconds since 1970. */
export interface GrantTimes {
  issuedAt: number
  expiresAt: number
}

/** Stored part of a session content, without credentials. A repeat rebuilds the content from it. */
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
  /** Returns the part to store, for the present state of a session. */
  issue(
    session: Session,
    grant: GrantTimes & { generation: number },
    continuity: { state: ContinuityState; replay?: Replay },
  ): Promise<Issued>
  /** Derives the credentials again: a repeat gets the same ones, and none is stored. */
  contentOf(issued: Issued): Promise<SessionContent>
  /** Returns whether a stream can resume after the last seen event, and the end of the log. */
  replayOf(conversationId: string, lastSeenEventId?: string): Promise<Replay>
}

/** Builds session contents from stored data and derived credentials (contract, section 2). */
export function createSessionContents(dependencies: {
  grants: Pick<Grants, 'sign' | 'renewalToken'>
  conversations: Pick<ConversationStore, 'find'>
  events: Pick<EventStore, 'ends'>
  replayWindow: Pick<ReplayWindow, 'oldest' | 'resolveStart'>
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

/**
 * Times of a grant that begins now and ends after its lifetime or with its session. Settings in
 * seconds.
 */
export function grantTimes(now: number, lifetime: number, endsAt: Date): GrantTimes {
  const issuedAt = Math.floor(now / 1000)
  return { issuedAt, expiresAt: Math.min(issuedAt + lifetime, Math.floor(endsAt.getTime() / 1000)) }
}
