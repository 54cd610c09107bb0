import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type DescMethod, type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { Code, type ConnectError, createContextValues } from '@connectrpc/connect'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { testDatabase } from '../test/support/test-database.ts'
import { until } from '../test/support/until.ts'
import { signWorkspaceSession } from '../test/support/workspace-session.ts'
import type { Collections } from './database/database.ts'
import { inMemoryTransport } from './server.ts'
import { site, startTestCores, type TestCores } from './test-core-context.ts'
import { call, requests, servedMethods, type Things, thingsOf } from './test-operator-calls.ts'
import { operatorScopes } from './workspaces/operator-scopes.ts'

/** Methods that a token of one workspace cannot call. */
const globalMethods = ['WorkspaceService.CreateWorkspace', 'WorkspaceService.ListWorkspaces']

const all = [...operatorScopes, 'visitors:act', 'deliveries:work'].join(' ')
const methods = servedMethods()
const isOperators = (method: DescMethod) => operatorScopes.has(getOption(method, scope))

const { uri, name } = testDatabase()
let cores: TestCores
let things: Things
let visitorGrant: string
/** Id of another workspace. */
let elsewhere: string

beforeAll(async () => {
  cores = await startTestCores({ uri, name })
  const session = await cores.newSession()
  visitorGrant = session.accessGrant
  things = await thingsOf(cores, session.sessionId, session.conversationId)
  elsewhere = (await cores.core.workspaces.createWorkspace('Elsewhere')).workspaceId
  await untilQuiet()
})
afterAll(() => cores.stop())

const bearer = (token: string) => `Bearer ${token}`
const session = async (claims: object = {}, more: object = {}) =>
  bearer(await signWorkspaceSession({ claims: { wid: things.workspaceId, scope: all, ...claims }, ...more }))
const seconds = () => Math.floor(Date.now() / 1000)

/** Hashes of all stored documents except wake-ups. */
async function documentHashes(): Promise<Record<string, string>> {
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

/** Waits until background work changes no document. */
async function untilQuiet() {
  await cores.core.inbox.noted()
  let before = await documentHashes()
  await until('no document changes', async () => {
    await delay(500)
    const now = await documentHashes()
    const isQuiet = JSON.stringify(now) === JSON.stringify(before)
    before = now
    return isQuiet
  })
}

describe('the scopes', () => {
  it.each(methods)('include the scope of %s, for operators or for the service itself', (_, method) => {
    const own = ['visitors:act', 'deliveries:work']
    expect([...operatorScopes, ...own]).toContain(getOption(method, scope))
    for (const each of own) expect(operatorScopes).not.toContain(each)
  })

  it('are all used by a method', () => {
    expect(new Set(methods.map(([, method]) => getOption(method, scope)))).toEqual(
      new Set([...operatorScopes, 'visitors:act', 'deliveries:work']),
    )
  })
})

describe.each(methods)('%s', (named, method) => {
  const request = () => requests[named]?.(things) ?? {}

  it.each<[string, () => Promise<string | undefined>]>([
    ['without a token', async () => undefined],
    ['with an empty token', async () => 'Bearer '],
    ['with another scheme', async () => `Basic ${Buffer.from('operator:secret').toString('base64')}`],
    ['with a malformed token', async () => 'Bearer a.b.c'],
    ['with a visitor’s access grant', async () => bearer(visitorGrant)],
    ['with an expired session', () => session({ exp: seconds() - 31 })],
    ['with a session without exp', () => session({ exp: undefined })],
    ['with a session for another audience', () => session({ aud: 'service.widget.public-api' })],
    ['with a session of another key', () => session({}, { key: new Uint8Array(32).fill(5) })],
    ['with a session without a workspace', () => session({ wid: undefined })],
    [
      'with an expired service token',
      async () =>
        bearer(await cores.core.access.issue({ subject: 'test', scopes: [getOption(method, scope)], lifetime: -1 })),
    ],
  ])('is Unauthenticated %s', async (_, authorization) => {
    expect(await call(cores, method, request(), await authorization())).toBe('Unauthenticated Unauthenticated')
  })

  it('is PermissionDenied with all scopes except its own', async () => {
    const others = all.split(' ').filter((each) => each !== getOption(method, scope))
    const service = bearer(await cores.core.access.issue({ subject: 'test', scopes: others }))
    for (const authorization of [await session({ scope: others.join(' ') }), await session({ scope: '' }), service])
      expect(await call(cores, method, request(), authorization)).toBe('PermissionDenied PermissionDenied')
  })

  if (!isOperators(method)) {
    it('is PermissionDenied for an operator, whatever the session claims', async () => {
      expect(await call(cores, method, request(), await session())).toBe('PermissionDenied PermissionDenied')
    })
    return
  }

  it('has a request in this test', () => {
    expect(Object.keys(requests)).toContain(named)
  })

  it('neither reads nor changes another workspace', async () => {
    const before = await documentHashes()
    const answer = await call(cores, method, request(), await session({ wid: elsewhere }))
    const refusal = globalMethods.includes(named) ? /^PermissionDenied PermissionDenied$/ : /^NotFound \w+$/
    expect(answer).toMatch(refusal)
    expect(await documentHashes()).toEqual(before)
  })
})

describe('an operator without a workspace in the request', () => {
  it.each(['ListConversations', 'ListLeads', 'ListDeliveries', 'ListSubscriptions', 'ListInstallations'])(
    'gets the data of the own workspace from %s',
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

// Last, because the effects of these calls continue in the background.
describe.each(methods.filter(([, method]) => isOperators(method)))('%s', (named, method) => {
  it('is allowed for an operator of the workspace', async () => {
    const fresh = await cores.newSession()
    const own = await thingsOf(cores, fresh.sessionId, fresh.conversationId)
    const answer = await call(cores, method, requests[named]!(own), await session())
    if (globalMethods.includes(named)) expect(answer).toBe('PermissionDenied PermissionDenied')
    // A navigation has no screenshot.
    else if (named === 'CommandService.GetScreenshot') expect(answer).toMatch(/^NotFound/)
    // The attempt is new and waits for a worker.
    else if (named === 'LeadService.RetryDeliveryAttempt') expect(answer).toBe('FailedPrecondition AttemptNotRetryable')
    else expect(answer).toBe('ok')
  })
})

describe('a visitor’s route', () => {
  it('rejects a workspace session as an access grant', async () => {
    const service = bearer(await cores.core.access.issue({ subject: 'gateway', scopes: ['visitors:act'] }))
    const accessGrant = (await session()).slice('Bearer '.length)
    const credentials = { accessGrant, origin: site }
    const scoped = methods.filter(([, method]) => method.input.fields.some(({ name }) => name === 'credentials'))
    expect(scoped.length).toBeGreaterThan(8)
    for (const [named, method] of scoped) {
      const form = named.endsWith('.SubmitForm') ? { form: 1 } : {}
      const typing = named.endsWith('.SetVisitorTyping') ? { state: 1 } : {}
      const close = named.endsWith('.CloseSession') ? { scope: 1 } : {}
      const answer = await call(cores, method, { credentials, ...form, ...typing, ...close }, service)
      expect([named, answer]).toEqual([named, 'Unauthenticated GrantInvalid'])
    }
  })
})

describe('a stream of an operator', () => {
  it('ends when the session expires', async () => {
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
