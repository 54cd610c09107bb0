import { expect } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Operation } from '../idempotency/idempotency.ts'
import { createIdentification, type IdentificationDependencies } from '../identity/identification.ts'
import { createKeyring, createPlannedIds } from '../keys/keyring.ts'
import type { Appended } from '../log/event-log.ts'
import type { Identity, Issued, Session, SessionContent } from '../sessions/model.ts'
import { sessionEndCodes } from '../sessions/visitor-access.ts'
import { defaultCapabilities, type Installation } from '../workspaces/model.ts'

export const now = Date.UTC(2030, 0, 1)
export const seconds = now / 1000
const plannedIds = createPlannedIds(createKeyring([{ kid: 'k1', secret: new Uint8Array(32).fill(1) }]))
const installation = { publicSiteKey: 'pk_1', capabilities: defaultCapabilities } as Installation
export const operation = 'op_1'
export const newSessionId = plannedIds('ses', operation)
export const newConversationId = plannedIds('cnv', operation)

/** An active session without an identity. */
export const anonymous: Session = {
  sessionId: 'ses_1',
  workspaceId: 'ws_1',
  connectionId: 'con_1',
  connectionVersion: 3,
  publicSiteKey: 'pk_1',
  origin: 'https://shop.example',
  conversationId: 'cnv_1',
  visitorId: 'vis_1',
  clientInstanceId: 'browser',
  locale: 'de',
  pageContext: { path: '/cart' } as Session['pageContext'],
  pageContextAt: new Date(now - 5000),
  status: 'active',
  createdAt: new Date(now - 60_000),
  grantExpiresAt: new Date(now + 30_000),
  endsAt: new Date(now + 3_600_000),
  renewal: { generation: 4, previousUntil: new Date(now) },
}
export const identityOf = (externalSubject: string, by = 'op_0'): Identity => ({
  externalSubject,
  subjectId: `sub_${externalSubject}`,
  operation: by,
  verifiedAt: new Date(now - 30_000),
})
export const verified: Session = { ...anonymous, identity: identityOf('ada') }

type Stubs = { [Part in keyof IdentificationDependencies]?: Partial<IdentificationDependencies[Part]> }

export interface Given {
  session: Session
  bannedIds: string[]
  /** Operation that has used the nonce of the assertion. */
  nonceOf: string
  /** Open conversation that the verified visitor has before the identification. */
  openConversationId: string
  /** Runs before each step. Tests use it to act as another process. */
  before: (step: string, sessions: Map<string, Session>) => void
}

/** Creates identification over stores in memory. `steps` lists the store calls in order. */
export function identificationInMemory(given: Partial<Given> = {}) {
  const { session = anonymous, bannedIds = [], nonceOf = operation, openConversationId } = given
  const sessions = new Map([[session.sessionId, session]])
  const steps: string[] = []
  const details = new Map<string, unknown>()
  const operations: Operation<unknown>[] = []
  const step = (name: string, detail?: unknown) => {
    given.before?.(name, sessions)
    steps.push(name)
    details.set(name, detail)
  }
  /** Changes an active session. */
  function change(sessionId: string, update: Partial<Session>): boolean {
    const found = sessions.get(sessionId)
    if (found?.status !== 'active') return false
    sessions.set(sessionId, { ...found, ...update })
    return true
  }
  async function live(sessionId: string) {
    const { status } = sessions.get(sessionId)!
    if (status !== 'active') throw new ServiceError(sessionEndCodes[status])
    return sessions.get(sessionId)!
  }
  const authorized = { grantIssuedAt: new Date(now - 10_000), grantExpiresAt: new Date(now + 20_000), installation }

  const dependencies = {
    store: {
      find: async ([id = '']) => [sessions.get(id)].filter((found) => found !== undefined),
      async insertOnce(created) {
        step('insert session', created)
        if (!sessions.has(created.sessionId)) sessions.set(created.sessionId, created)
        return true
      },
      async refreshIdentity(sessionId, identity, times) {
        step('refresh identity', { identity, ...times })
        return change(sessionId, { identity })
      },
      async replaceBy(sessionId, successor, identity) {
        step('replace', { sessionId, successor, identity })
        return change(sessionId, { status: 'closed', successor, ...(identity && { identity }) })
      },
      async end(sessionId, status) {
        step(`end ${sessionId === newSessionId ? 'new' : sessionId} ${status}`)
        return change(sessionId, { status })
      },
    },
    bans: {
      async isSubjectBanned(_, externalSubject) {
        return bannedIds.includes(`sub_${externalSubject}`)
      },
      async isBanned({ visitorId, identity }) {
        const ids = identity ? [visitorId, identity.subjectId] : [visitorId]
        details.set('check bans', ids)
        return ids.some((id) => bannedIds.includes(id))
      },
    },
    conversations: {
      async insertOnce({ conversationId }) {
        step('insert conversation', conversationId)
        return true
      },
      async setLastSession(...call) {
        step('set last session', call)
      },
    },
    nonces: {
      async consume(nonce, at) {
        step('consume nonce', { nonce, at })
        return nonceOf === nonce.operation
      },
    },
    subjects: {
      idOf: async (connectionId, subject) => `${connectionId === 'con_1' ? 'sub' : 'wrong'}_${subject}`,
      async reconcile(subjectId) {
        step(`reconcile ${subjectId}`)
      },
      async decideConversation(created, predecessor) {
        step('decide conversation', predecessor.sessionId)
        return { ...created, conversationId: openConversationId ?? created.conversationId }
      },
    },
    consents: {
      async inherit({ sessionId }) {
        step(`inherit consent ${sessionId === newSessionId ? 'new' : sessionId}`)
      },
    },
    observations: {
      pageAtStart: ({ capabilities }, sent) => (capabilities.pageContext ? sent : undefined),
      async keepPage(sessionId) {
        step(`keep page ${sessionId}`)
      },
    },
    assertions: {
      async verify(assertion, at) {
        expect(at).toBe(installation)
        return { externalSubject: assertion, displayName: 'A', nonce: 'nonce', endsAt: new Date(now + 90_000) }
      },
    },
    contents: {
      async issue({ sessionId, conversationId, identity }, grant, continuity) {
        return { sessionId, conversationId, identity, grant, continuity } as unknown as Issued
      },
      contentOf: async (issued) => issued as unknown as SessionContent,
    },
    access: {
      async authorize(_, options) {
        expect(options).toEqual({ closedToo: true })
        return { ...authorized, session }
      },
      live,
    },
    log: {
      async append(draft) {
        step('append', draft)
        return { event: { sequence: 9 }, replayed: false } as Appended
      },
    },
    idempotency: {
      async once(wanted) {
        operations.push(wanted)
        return { result: await wanted.run(operation, new Date(now)), replayed: false }
      },
    },
    plannedIds,
    wakeups: {
      async changing([id], write) {
        const result = await write()
        step(`wake up ${id}`)
        return result
      },
      async stateChanged(id) {
        step(`wake up ${id}`)
      },
    },
    settings: { grantLifetime: 600, renewable: 1200, sessionLifetime: 7200, idempotencyRetention: 300 },
    now: () => now,
  } as Stubs
  const identification = createIdentification(dependencies as IdentificationDependencies)
  const credentials = { accessGrant: 'grant', origin: anonymous.origin }
  const idempotencyKey = 'key'
  return {
    steps,
    details,
    sessions,
    operations,
    identify: async (assertion = 'ada') =>
      (await identification.identify({ credentials, assertion, idempotencyKey })).content,
    clear: async () => (await identification.clear({ credentials, idempotencyKey })).content,
  }
}

export const rejectsWith = (attempt: Promise<unknown>, code: keyof typeof ErrorCode) =>
  expect(attempt).rejects.toMatchObject({ code: ErrorCode[code] })

/** The grant of a new session. */
export const firstGrant = { issuedAt: seconds, expiresAt: seconds + 600, renewableUntil: seconds + 1800, generation: 0 }

/** The identity that an identification as `ada` stores. */
export const newIdentity = {
  externalSubject: 'ada',
  subjectId: 'sub_ada',
  displayName: 'A',
  operation,
  verifiedAt: new Date(now),
}
