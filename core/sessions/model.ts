import type { CoreConfig } from '../config.ts'
import { newEpoch } from '../ids.ts'
import type { Conversation } from '../log/conversation-model.ts'
import type { Installation } from '../workspaces/model.ts'

export type SessionStatus = 'active' | 'closed' | 'revoked' | 'banned'

export interface Identity {
  subjectId: string
  externalSubject: string
  displayName?: string
  /** Context for operators, of limited size. Stored as pairs because the host chooses the keys. */
  context?: [key: string, value: IdentityContextValue][]
  verifiedAt: Date
  /** Operation that submitted the assertion. */
  operation: string
}

export interface Session {
  sessionId: string
  workspaceId: string
  connectionId: string
  publicSiteKey: string
  /** Origin to which the session's grants are bound. */
  origin: string
  /** Never changes after a client has received the session's credentials. */
  conversationId: string
  visitorId: string
  clientInstanceId: string
  /** Keyed hash of the browser's last network address, if the gateway has sent it. */
  network?: string
  locale?: string
  /** The last reported page and the time of the report. */
  pageContext?: PageContext
  pageContextAt?: Date
  /** Time at which the visitor closed the panel. Absent while the panel is open. */
  panelClosedAt?: Date
  /**
   * A verified session has an identity from its start. An anonymous session gets one from the write that
   * replaces it with a verified session. From then on it belongs to the verified visitor too.
   */
  identity?: Identity
  /**
   * True if the visitor may have written a message. Set before the first message of an anonymous
   * session, so that an identification continues its conversation.
   */
  hasWritten?: boolean
  /** Version of the connection's status when the session began. A later version ends the session. */
  connectionVersion: number
  /** The visitor's decisions on the consent policy, newest last, also from earlier sessions. */
  consents?: StoredConsent[]
  /** The session that replaced this one, and the operation that made the replacement. */
  successor?: { operation: string; sessionId: string }
  /** The session that this one replaces, until this one has its conversation and gets credentials. */
  provisionalFor?: string
  /**
   * The anonymous session before this one. The browser may repeat its operations in this session,
   * because their outcome may be unknown.
   */
  operationSessionId?: string
  /** The visitor's operation that closed the session. */
  closedBy?: string
  status: SessionStatus
  createdAt: Date
  grantExpiresAt: Date
  /** Time at which the session expires if no renewal extends it. Not before the end of the grant. */
  renewableUntil: Date
  /** Latest end of the session. Renewals cannot extend it. */
  endsAt: Date
  renewal: {
    /** Number of renewals of the session. The renewal token is derived from this number. */
    generation: number
    /** Time until which the previous generation's token is valid. */
    previousUntil: Date
    /** The latest operation that rotated the token. Absent before the first renewal. */
    operation?: string
  }
}

/** Returns the session id for the operation keys of a visitor, so that repeated operations are found. */
export const operationSessionOf = ({ sessionId, operationSessionId = sessionId }: Session): string => operationSessionId

export interface ConsentDecision {
  decision: 'granted' | 'denied'
  policyVersion: string
  policyUrl: string
  decidedAt: Date
}

export type StoredConsent = ConsentDecision & { operation: string }

export type IdentityContextValue = string | number | boolean

/** The page that the visitor is on. Invalid values are left out (contract, section 3). */
export interface PageContext {
  url?: string
  title?: string
  referrer?: string
  viewport?: { width: number; height: number }
}

/** The session's data in the form that a browser receives (specification, section 2.2). */
export interface SessionContent {
  sessionId: string
  conversationId: string
  accessGrant: string
  expiresAt: Date
  renewAfter: Date
  renewableUntil: Date
  /** Empty if the caller must not get it (contract, rule 24). */
  renewalToken: string
  replay: Replay
  continuityState: ContinuityState
  identityState: 'anonymous' | 'verified'
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
  /** Time until which the grant's session can be renewed. */
  renewableUntil: number
}

/** The stored part of a session's content. A repeated operation adds the credentials to it again. */
export interface Issued extends GrantTimes {
  sessionId: string
  conversationId: string
  origin: string
  generation: number
  replay: Replay
  continuityState: ContinuityState
  identity?: { displayName?: string }
}

type Lifetimes = Pick<CoreConfig, 'GRANT_LIFETIME_SECONDS' | 'SESSION_RENEWABLE_SECONDS' | 'SESSION_LIFETIME_SECONDS'>

/** Returns the times of a grant that begins now. No time is after the end of the session. */
export function grantTimes(now: number, config: Lifetimes, endsAt: Date): GrantTimes {
  const issuedAt = Math.floor(now / 1000)
  const sessionEnd = Math.floor(endsAt.getTime() / 1000)
  const expiresAt = Math.min(issuedAt + config.GRANT_LIFETIME_SECONDS, sessionEnd)
  return { issuedAt, expiresAt, renewableUntil: Math.min(expiresAt + config.SESSION_RENEWABLE_SECONDS, sessionEnd) }
}

/** Returns the ends of a grant and of its session in the form that a session stores. */
export function storedTimes({ expiresAt, renewableUntil }: GrantTimes) {
  return { grantExpiresAt: new Date(expiresAt * 1000), renewableUntil: new Date(renewableUntil * 1000) }
}

export function newSession(
  facts: Omit<Session, 'status' | 'createdAt' | 'grantExpiresAt' | 'renewableUntil' | 'endsAt' | 'renewal'>,
  now: number,
  config: Lifetimes,
): Session {
  const createdAt = new Date(now)
  const endsAt = new Date((Math.floor(now / 1000) + config.SESSION_LIFETIME_SECONDS) * 1000)
  return {
    ...facts,
    status: 'active',
    createdAt,
    ...storedTimes(grantTimes(now, config, endsAt)),
    endsAt,
    renewal: { generation: 0, previousUntil: createdAt },
  }
}

export function newConversation(
  { conversationId, workspaceId, connectionId }: Pick<Session, 'conversationId' | 'workspaceId' | 'connectionId'>,
  now: number,
): Conversation {
  return { conversationId, workspaceId, connectionId, epoch: newEpoch(), createdAt: new Date(now) }
}

/** Returns times and generation of a grant of a session; by default of the first one, before any renewal. */
export function grantOf(session: Session, issued = session.createdAt, expires = session.grantExpiresAt) {
  return {
    issuedAt: Math.floor(issued.getTime() / 1000),
    expiresAt: expires.getTime() / 1000,
    renewableUntil: session.renewableUntil.getTime() / 1000,
    generation: session.renewal.generation,
  }
}

export interface VisitorCredentials {
  accessGrant: string
  origin: string
}

/** An operation of a visitor that browsers may repeat. */
export interface VisitorOperation {
  credentials: VisitorCredentials
  idempotencyKey: string
}

export interface Visitor {
  session: Session
  installation: Installation
  /** Start of the grant in the request. `grantExpiresAt` is its end. */
  grantIssuedAt: Date
  grantExpiresAt: Date
}

export type SessionEnd = 'expired' | 'revoked' | 'banned' | 'disabled' | 'closed'
