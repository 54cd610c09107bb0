import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type DescMethod, type DescMethodStreaming, type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { Code, ConnectError, createConnectRouter, createContextValues } from '@connectrpc/connect'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { testDatabase } from '../test/support/test-database.ts'
import { until } from '../test/support/until.ts'
import { signWorkspaceSession } from '../test/support/workspace-session.ts'
import { readCoreConfig } from './config.ts'
import { newId } from './ids.ts'
import { operatorScopes } from './operator-scopes.ts'
import { inMemoryTransport } from './server.ts'
import { coreRoutes } from './services/router.ts'
import type { Collections } from './store/database.ts'
import { createErasureStore } from './store/erasures.ts'
import { site, startTestCores, type TestCores } from './test-core-context.ts'

/** What stands in one workspace, for another one's operator to reach for. */
interface Things {
  workspaceId: string
  connectionId: string
  siteKey: string
  sessionId: string
  conversationId: string
  commandId: string
  leadId: string
  subscriptionId: string
  attemptId: string
  erasureId: string
}

const bySession = ({ sessionId }: Things) => ({ visitor: { by: { case: 'sessionId', value: sessionId } } })

/**
 * A request of each operator method about things of one workspace. A new method needs a line here: then it is known that
 * no other workspace's operator gets through.
 */
const requests: Record<string, (things: Things) => Record<string, unknown>> = {
  'SessionService.GetSession': ({ sessionId }) => ({ sessionId }),
  'SessionService.RevokeSession': ({ sessionId }) => ({ sessionId }),
  'SessionService.BanVisitor': ({ sessionId }) => ({ sessionId, reason: 'Spam' }),
  'SessionService.UnbanVisitor': ({ sessionId }) => ({ sessionId }),
  'MessagingService.SendAgentMessage': ({ conversationId }) => ({
    conversationId,
    clientOperationId: randomUUID(),
    body: 'Hello',
    agent,
  }),
  'MessagingService.ListMessages': ({ conversationId }) => ({ conversationId }),
  'MessagingService.GetConversation': ({ conversationId }) => ({ conversationId }),
  'MessagingService.ListConversations': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.WatchConversations': ({ workspaceId }) => ({ workspaceId }),
  'MessagingService.SetTyping': ({ conversationId }) => ({ conversationId, state: 1, agent }),
  'MessagingService.UpdateMessageState': ({ conversationId }) => ({ conversationId, upToSequence: 1, state: 'read' }),
  'MessagingService.AssignAgent': ({ conversationId }) => ({ conversationId, agent }),
  'MessagingService.UnassignAgent': ({ conversationId }) => ({ conversationId }),
  'MessagingService.CloseConversation': ({ conversationId }) => ({ conversationId }),
  'CommandService.RequestNavigation': ({ sessionId }) => ({ sessionId, url: `${site}/a` }),
  'CommandService.RequestScreenshot': ({ sessionId }) => ({ sessionId }),
  'CommandService.CancelCommand': ({ commandId }) => ({ commandId }),
  'CommandService.GetCommand': ({ commandId }) => ({ commandId }),
  'CommandService.ListCommands': ({ sessionId }) => ({ sessionId }),
  'CommandService.GetScreenshot': ({ commandId }) => ({ commandId }),
  'LeadService.CaptureLead': ({ workspaceId }) => ({ workspaceId, source: 'test', fields: { name: 'Ada' } }),
  'LeadService.GetLead': ({ leadId }) => ({ leadId }),
  'LeadService.ListLeads': ({ workspaceId }) => ({ workspaceId }),
  'LeadService.CreateDeliveryAttempt': ({ leadId, subscriptionId }) => ({
    leadId,
    subscriptionId,
    idempotencyKey: randomUUID(),
  }),
  'LeadService.RetryDeliveryAttempt': ({ attemptId }) => ({ attemptId, idempotencyKey: randomUUID() }),
  'LeadService.ListDeliveryAttempts': ({ leadId }) => ({ leadId }),
  'LeadService.ListDeliveries': ({ workspaceId }) => ({ workspaceId }),
  'LeadService.CreateSubscription': ({ workspaceId }) => ({ workspaceId, destinationUrl }),
  'LeadService.UpdateSubscription': ({ subscriptionId }) => ({ subscriptionId, automatic: true }),
  'LeadService.RotateSubscriptionSecret': ({ subscriptionId }) => ({ subscriptionId }),
  'LeadService.GetSubscription': ({ subscriptionId }) => ({ subscriptionId }),
  'LeadService.ListSubscriptions': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.CreateWorkspace': () => ({ name: 'Another' }),
  'WorkspaceService.GetWorkspace': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.CreateConnection': ({ workspaceId }) => ({ workspaceId, name: 'Another' }),
  'WorkspaceService.ListConnections': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.SetConnectionStatus': ({ connectionId }) => ({ connectionId, status: 1 }),
  'WorkspaceService.CreateInstallation': ({ connectionId }) => ({ connectionId, origins: ['https://other.example'] }),
  'WorkspaceService.UpdateInstallation': ({ siteKey }) => ({ siteKey, defaultLocale: 'de' }),
  'WorkspaceService.ListInstallations': ({ workspaceId }) => ({ workspaceId }),
  'WorkspaceService.RotateIdentitySecret': ({ siteKey }) => ({ siteKey }),
  'WorkspaceService.ListWorkspaces': () => ({}),
  'PrivacyService.ExportVisitor': bySession,
  'PrivacyService.EraseVisitor': bySession,
  'PrivacyService.GetErasure': ({ erasureId }) => ({ erasureId }),
}

/** What nobody does who is bound to one workspace. */
const overAll = ['WorkspaceService.CreateWorkspace', 'WorkspaceService.ListWorkspaces']

const agent = { displayName: 'Ada' }
const desk = { subject: 'desk' }
/** An address, so that no name is asked for. */
const destinationUrl = 'https://93.184.216.34/hook'
const all = [...operatorScopes, 'visitors:act', 'deliveries:work'].join(' ')
/** The router knows every service that the core serves, so no method is left out. */
const served = createConnectRouter({ grpc: false, grpcWeb: false })
coreRoutes({ config: readCoreConfig({}) } as never)(served)
const methods = served.handlers.map(({ method }): [string, DescMethod] => [
  `${method.parent.name}.${method.name}`,
  method,
])
const isOperators = (method: DescMethod) => operatorScopes.has(getOption(method, scope))

const { uri, name } = testDatabase()
let cores: TestCores
let things: Things
let visitorGrant: string
/** Another workspace, with an operator of its own. */
let elsewhere: string

beforeAll(async () => {
  cores = await startTestCores({ uri, name })
  const session = await cores.newSession()
  visitorGrant = session.accessGrant
  things = await thingsOf(session.sessionId, session.conversationId)
  elsewhere = (await cores.core.workspaces.createWorkspace('Elsewhere')).workspaceId
  await untilNothingMoves()
})
afterAll(() => cores.stop())

async function thingsOf(sessionId: string, conversationId: string): Promise<Things> {
  const { core, workspaceId, connectionId, publicSiteKey: siteKey } = cores
  const seen = { workspaceId, connectionId, siteKey, sessionId, conversationId }
  await core.messages.sendAsAgent({ conversationId, clientOperationId: randomUUID(), body: 'Hello', agent })
  const { content } = await core.commands.requestNavigation({ sessionId, url: `${site}/a` }, desk)
  const leadId = await core.leads.capture({ workspaceId, source: 'test', fields: {} }, undefined)
  const { commandId } = content
  const settings = { workspaceId, destinationUrl, mappedFields: [], automatic: false }
  const { subscription } = await core.leadSubscriptions.create(settings, desk)
  const { subscriptionId } = subscription
  const { attempt } = await core.deliveries.createAttempt(
    { leadId, subscriptionId, idempotencyKey: randomUUID() },
    desk,
  )
  const { attemptId } = attempt
  const { erasureId } = await finishedErasure(workspaceId)
  return { ...seen, commandId, leadId, subscriptionId, attemptId, erasureId }
}

/** One that does not go on by itself while a test looks. */
async function finishedErasure(workspaceId: string) {
  const store = createErasureStore(cores.core.database.collections)
  const at = new Date()
  const erasureId = newId('ers')
  const visitor = { workspaceId, browserIds: [], subjectIds: [] }
  await store.insert(
    { erasureId, workspaceId, stage: 'removed', requestedBy: 'desk', requestedAt: at, visitor, until: at },
    new Date(at.getTime() + 60_000),
  )
  await store.finish(erasureId, at)
  return { erasureId }
}

/** What the core says to a call: its Connect code and its public one. */
async function call(method: DescMethod, request: Record<string, unknown>, authorization?: string): Promise<string> {
  const transport = inMemoryTransport(cores.core)
  const headers = new Headers(authorization === undefined ? {} : { authorization })
  const stop = new AbortController()
  try {
    if (method.methodKind === 'unary') {
      await transport.unary(method as DescMethodUnary, stop.signal, 20_000, headers, request, createContextValues())
      return 'ok'
    }
    const input = (async function* () {
      yield request
    })()
    const { message } = await transport.stream(
      method as DescMethodStreaming,
      stop.signal,
      20_000,
      headers,
      input,
      createContextValues(),
    )
    await message[Symbol.asyncIterator]().next()
    return 'ok'
  } catch (reason) {
    const error = ConnectError.from(reason)
    return `${Code[error.code]} ${error.findDetails(ErrorInfoSchema)[0]?.code ?? ''}`.trim()
  } finally {
    stop.abort()
  }
}

const bearer = (token: string) => `Bearer ${token}`
const session = async (claims: object = {}, more: object = {}) =>
  bearer(await signWorkspaceSession({ claims: { wid: things.workspaceId, scope: all, ...claims }, ...more }))
const seconds = () => Math.floor(Date.now() / 1000)

/** What is written of anybody, each document as a hash, but for the notes that cores leave each other. */
async function everything(): Promise<Record<string, string>> {
  const { wakeups: _, ...collections } = cores.core.database.collections
  const documents = await Promise.all(
    Object.entries(collections).map(async ([name, collection]) =>
      (await (collection as Collections['workspaces']).find({}).toArray()).map((document): [string, string] => [
        `${name} ${document._id}`,
        createHash('sha256').update(JSON.stringify(document)).digest('hex'),
      ]),
    ),
  )
  return Object.fromEntries(documents.flat())
}

/** Whatever follows by itself from what was made has followed. */
async function untilNothingMoves() {
  await cores.core.inbox.noted()
  let before = await everything()
  await until('nothing moves', async () => {
    await delay(500)
    const now = await everything()
    const still = JSON.stringify(now) === JSON.stringify(before)
    before = now
    return still
  })
}

describe('the scopes', () => {
  it.each(methods)('of %s is one that operators may hold, or the service’s own', (_, method) => {
    const own = ['visitors:act', 'deliveries:work']
    expect([...operatorScopes, ...own]).toContain(getOption(method, scope))
    for (const each of own) expect(operatorScopes).not.toContain(each)
  })

  it('are all in use', () => {
    expect(new Set(methods.map(([, method]) => getOption(method, scope)))).toEqual(
      new Set([...operatorScopes, 'visitors:act', 'deliveries:work']),
    )
  })
})

describe.each(methods)('%s', (named, method) => {
  const request = () => requests[named]?.(things) ?? {}

  it.each<[string, () => Promise<string | undefined>]>([
    ['without a token', async () => undefined],
    ['with an empty one', async () => 'Bearer '],
    ['with another scheme', async () => `Basic ${Buffer.from('operator:secret').toString('base64')}`],
    ['with garbage', async () => 'Bearer a.b.c'],
    ['with a visitor’s access grant', async () => bearer(visitorGrant)],
    ['with a session that has ended', () => session({ exp: seconds() - 31 })],
    ['with a session without an end', () => session({ exp: undefined })],
    ['with a session for another audience', () => session({ aud: 'service.widget.public-api' })],
    ['with a session of another key', () => session({}, { key: new Uint8Array(32).fill(5) })],
    ['with a session without a workspace', () => session({ wid: undefined })],
    [
      'with a service token that has ended',
      async () =>
        bearer(await cores.core.access.issue({ subject: 'test', scopes: [getOption(method, scope)], lifetime: -1 })),
    ],
  ])('is Unauthenticated %s', async (_, authorization) => {
    expect(await call(method, request(), await authorization())).toBe('Unauthenticated Unauthenticated')
  })

  it('is PermissionDenied with the scopes of everything else', async () => {
    const others = all.split(' ').filter((each) => each !== getOption(method, scope))
    const service = bearer(await cores.core.access.issue({ subject: 'test', scopes: others }))
    for (const authorization of [await session({ scope: others.join(' ') }), await session({ scope: '' }), service])
      expect(await call(method, request(), authorization)).toBe('PermissionDenied PermissionDenied')
  })

  if (!isOperators(method)) {
    it('is PermissionDenied to an operator, whatever the session claims', async () => {
      expect(await call(method, request(), await session())).toBe('PermissionDenied PermissionDenied')
    })
    return
  }

  it('is known to this test', () => {
    expect(Object.keys(requests)).toContain(named)
  })

  it('shows and changes nothing of another workspace', async () => {
    const before = await everything()
    const answer = await call(method, request(), await session({ wid: elsewhere }))
    const refusal = overAll.includes(named) ? /^PermissionDenied PermissionDenied$/ : /^NotFound \w+$/
    expect(answer).toMatch(refusal)
    expect(await everything()).toEqual(before)
  })
})

describe('an operator who names no workspace', () => {
  it.each(['ListConversations', 'ListLeads', 'ListDeliveries', 'ListSubscriptions', 'ListInstallations'])(
    'is shown by %s what is in their own',
    async (name) => {
      const [, method] = methods.find(([named]) => named.endsWith(`.${name}`))!
      const listed = async (wid: string) => {
        const headers = new Headers({ authorization: await session({ wid }) })
        const transport = inMemoryTransport(cores.core)
        const values = createContextValues()
        const { message } = await transport.unary(method as DescMethodUnary, undefined, 20_000, headers, {}, values)
        return Object.values(message).find(Array.isArray)?.length
      }
      expect([await listed(elsewhere), await listed(things.workspaceId)]).toEqual([0, 1])
    },
  )
})

// After those, since what is done here goes on by itself.
describe.each(methods.filter(([, method]) => isOperators(method)))('%s', (named, method) => {
  it('is open to the workspace’s own operator', async () => {
    const fresh = await cores.newSession()
    const own = await thingsOf(fresh.sessionId, fresh.conversationId)
    const answer = await call(method, requests[named]!(own), await session())
    if (overAll.includes(named)) expect(answer).toBe('PermissionDenied PermissionDenied')
    // A command that is no screenshot has none.
    else if (named === 'CommandService.GetScreenshot') expect(answer).toMatch(/^NotFound/)
    // It has just been made and waits for its worker.
    else if (named === 'LeadService.RetryDeliveryAttempt') expect(answer).toBe('FailedPrecondition AttemptNotRetryable')
    else expect(answer).toBe('ok')
  })
})

describe('a visitor’s route', () => {
  it('takes no workspace session for a grant', async () => {
    const service = bearer(await cores.core.access.issue({ subject: 'gateway', scopes: ['visitors:act'] }))
    const accessGrant = (await session()).slice('Bearer '.length)
    const credentials = { accessGrant, origin: site }
    const scoped = methods.filter(([, method]) => method.input.fields.some(({ name }) => name === 'credentials'))
    expect(scoped.length).toBeGreaterThan(8)
    for (const [named, method] of scoped) {
      const form = named.endsWith('.SubmitForm') ? { form: 1 } : {}
      const typing = named.endsWith('.SetVisitorTyping') ? { state: 1 } : {}
      const close = named.endsWith('.CloseSession') ? { scope: 1 } : {}
      const answer = await call(method, { credentials, ...form, ...typing, ...close }, service)
      expect([named, answer]).toEqual([named, 'Unauthenticated GrantInvalid'])
    }
  })
})

describe('what an operator watches', () => {
  it('ends with the session', async () => {
    const [, method] = methods.find(([named]) => named === 'MessagingService.WatchConversations')!
    const headers = new Headers({ authorization: await session({ exp: seconds() + 2 }) })
    const input = (async function* () {
      yield {}
    })()
    const { message } = await inMemoryTransport(cores.core).stream(
      method as never,
      undefined,
      undefined,
      headers,
      input,
      createContextValues(),
    )
    let frames = 0
    const end = await (async () => {
      for await (const _ of message) frames += 1
    })().catch((error: ConnectError) => error.code)
    expect([frames > 0, end]).toEqual([true, Code.Unauthenticated])
  })
})
