import type { ServerResponse } from 'node:http'
import type { SessionContent } from '../src/vocabulary/types.ts'
import { createScenarioConversation, type ScenarioConversation } from './scenario-conversation.ts'
import { answer, refuse, type SeenRequest } from './scenario-http.ts'
import { type Refusal, type Scenario, type SiteKey, scenarios } from './scenarios.ts'

export interface Site {
  scenario: Scenario
  left: Scenario
  sessions: Map<string, Session>
  created: Map<string, { body: string; content: SessionContent }>
}

export interface Session {
  content: SessionContent
  conversation: ScenarioConversation
  /** The previous renewal token, and the time until which it is accepted. */
  previous?: { token: string; until: number }
  /** Answers to renewals, by idempotency key. */
  renewals: Map<string, SessionContent>
  /** Answers to identifications, by idempotency key. */
  identities: Map<string, SessionContent>
  subject?: string
  ended?: Refusal
}

/**
 * Creates the sites of a scenario server, and answers the requests that create, renew, identify and
 * close their sessions.
 */
export function createScenarioSessions(now: () => number) {
  const sites = new Map<string, Site>()
  let counter = 0
  let continues = false

  return {
    sites,
    siteOf,
    createSession,
    renew,
    identify,
    close,
    endSession,
    /** New sessions continue the newest conversation of their site key from now on. */
    continueConversations() {
      continues = true
    },
  }

  function siteOf(siteKey: string): Site | undefined {
    const scenario: Scenario | undefined = scenarios[siteKey as SiteKey]
    if (!scenario || scenario.unknown) return undefined
    const site = sites.get(siteKey) ?? {
      scenario,
      left: structuredClone(scenario),
      sessions: new Map(),
      created: new Map(),
    }
    sites.set(siteKey, site)
    return site
  }

  function createSession(response: ServerResponse, { body, headers }: SeenRequest, text: string) {
    const site = siteOf(String(body?.publicSiteKey))
    if (!site) return refuse(response, { status: 404, code: 'InstallationNotFound', terminal: true })
    const key = String(headers['idempotency-key'])
    const before = site.created.get(key)
    if (before && before.body !== text) return refuse(response, { status: 409, code: 'IdempotencyConflict' })
    const content = before?.content ?? newSession(site)
    site.created.set(key, { body: text, content })
    if (spend(site.left, 'loseSessions')) return response.destroy()
    answer(response, 201, content)
  }

  function newSession(site: Site, continued?: ScenarioConversation): SessionContent {
    const number = ++counter
    const before = continued ?? (continues ? [...site.sessions.values()].at(-1)?.conversation : undefined)
    const conversation = before ?? createScenarioConversation(`cnv_${number}`, { ...site.scenario, ...site.left }, now)
    const content = contentOf(`ses_${number}`, conversation)
    if (before) content.continuity = { state: 'continued' }
    site.sessions.set(content.sessionId, { content, conversation, renewals: new Map(), identities: new Map() })
    return content
  }

  function contentOf(sessionId: string, conversation: ScenarioConversation): SessionContent {
    const issuedAt = now()
    const payload = {
      sid: sessionId,
      iat: Math.floor(issuedAt / 1000),
      exp: Math.floor(issuedAt / 1000) + 900,
      n: ++counter,
    }
    return {
      sessionId,
      conversationId: conversation.id,
      accessGrant: `e30.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.c2ln`,
      expiresAt: new Date(issuedAt + 900_000).toISOString(),
      renewAfter: new Date(issuedAt + 600_000).toISOString(),
      renewableUntil: new Date(issuedAt + 8_100_000).toISOString(),
      renewalToken: `rnw_${counter}`,
      replay: { state: 'ready', epoch: 'e1', lastSequence: conversation.lastSequence(), oldestSequence: 0 },
      continuity: { state: 'new' },
      identity: { state: 'anonymous' },
    }
  }

  function renew(response: ServerResponse, site: Site, session: Session, { body, headers }: SeenRequest) {
    const refusal = site.left.refuseRenewals?.shift()
    if (refusal) return refuse(response, refusal)
    const key = String(headers['idempotency-key'])
    const before = session.renewals.get(key)
    if (before) return answer(response, 200, before)
    const { renewalToken, sessionId, expiresAt } = session.content
    const isPrevious = body?.renewalToken === session.previous?.token && now() < (session.previous?.until ?? 0)
    if (body?.renewalToken !== renewalToken && !isPrevious) {
      return refuse(response, { status: 401, code: 'GrantInvalid', terminal: true })
    }
    // A duplicated tab sends the previous token. The server then returns the current session and
    // does not rotate the token.
    const rotates = body?.renewalToken === renewalToken
    const { identity } = session.content
    session.content = { ...contentOf(sessionId, session.conversation), identity }
    const until = Math.max(Date.parse(expiresAt), now() + (now() < Date.parse(expiresAt) ? 0 : 900_000))
    if (rotates) session.previous = { token: renewalToken, until }
    else session.content.renewalToken = renewalToken
    session.renewals.set(key, session.content)
    if (spend(site.left, 'loseRenewals')) return response.destroy()
    answer(response, 200, session.content)
  }

  /**
   * Handles the identity routes. POST keeps a session of the same subject; it closes and replaces
   * an anonymous session or a session of another subject. DELETE closes a verified session.
   */
  function identify(response: ServerResponse, site: Site, session: Session, { method, headers, body }: SeenRequest) {
    const key = String(headers['idempotency-key'])
    const before = session.identities.get(key)
    if (before) return answer(response, 200, before)
    if (session.ended) return refuse(response, session.ended)
    const refusal = site.left.refuseIdentities?.shift()
    if (refusal) return refuse(response, refusal)
    const claims = method === 'POST' ? claimsOf(String(body?.assertion)) : undefined
    if (method === 'POST' && !claims?.sub) return refuse(response, { status: 401, code: 'IdentityAssertionInvalid' })
    const goesOn = claims?.sub === session.subject
    if (!goesOn && !session.subject)
      session.conversation.emit('session.identified', {}, undefined, session.content.sessionId)
    const content = goesOn ? session.content : newSession(site, continuedBy(site, session, claims?.sub))
    const now = site.sessions.get(content.sessionId)!
    now.subject = claims?.sub
    if (claims) now.content = { ...content, identity: { state: 'verified', displayName: claims.name } }
    session.identities.set(key, now.content)
    if (!goesOn) endSession(session, 'session.closed', { status: 401, code: 'SessionClosed' })
    if (spend(site.left, 'loseIdentities')) return response.destroy()
    const { renewalToken, ...known } = now.content
    answer(response, 200, goesOn ? known : { ...known, renewalToken })
  }

  /**
   * Returns the conversation that the session after an identification continues. This is the
   * anonymous conversation if it has messages, else the subject's newest conversation. If the
   * subject has none, this is the anonymous conversation without messages.
   */
  function continuedBy(site: Site, { subject, conversation }: Session, next: string | undefined) {
    if (next === undefined) return undefined
    if (subject === undefined && conversation.messages.length > 0) return conversation
    const others = [...site.sessions.values()].filter((session) => session.subject === next)
    return others.at(-1)?.conversation ?? (subject === undefined ? conversation : undefined)
  }

  function close(response: ServerResponse, session: Session, scope: unknown) {
    const state = scope === 'panel' ? 'active' : 'closed'
    answer(response, 200, { sessionId: session.content.sessionId, state })
    if (state === 'closed') endSession(session, 'session.closed', { status: 401, code: 'SessionClosed' })
  }

  function endSession(session: Session, event: string, refusal: Refusal) {
    session.ended = { retryable: false, terminal: true, ...refusal }
    session.conversation.emit(event, {}, undefined, session.content.sessionId)
  }
}

export function grantSession(grant: string | undefined): string | undefined {
  return payloadOf(grant)?.sid
}

/** Returns the time at which a grant expires, in milliseconds since the epoch. */
export function endOf(grant: string | undefined): number {
  return (payloadOf(grant)?.exp ?? 0) * 1000
}

function payloadOf(grant: string | undefined): { sid: string; exp: number } | undefined {
  try {
    return JSON.parse(Buffer.from(String(grant?.split('.')[1]), 'base64url').toString())
  } catch {
    return undefined
  }
}

function claimsOf(assertion: string): { sub?: string; name?: string } | undefined {
  try {
    return JSON.parse(Buffer.from(String(assertion.split('.')[1]), 'base64url').toString())
  } catch {
    return undefined
  }
}

type Countdown = 'loseAnswers' | 'loseSessions' | 'loseRenewals' | 'loseIdentities' | 'stallSends' | 'stallAnswers'

export function spend(left: Scenario, name: Countdown): boolean {
  const rest = left[name] ?? 0
  left[name] = rest - 1
  return rest > 0
}
