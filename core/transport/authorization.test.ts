import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type DescMethod, type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { Code, type ConnectError, createContextValues } from '@connectrpc/connect'
import { beforeAll, describe, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { until } from '../../test/support/until.ts'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import type { Collections } from '../database/collections.ts'
import { testCores } from '../test/cores.ts'
import { call, requests, servedMethods, type Things, thingsOf } from '../test/operator-calls.ts'
import { transportTo } from '../test/transports.ts'
import { site } from '../test/visitor-credentials.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'

/** Global methods: a token of one workspace cannot call them. */
const globalMethods = ['WorkspaceService.CreateWorkspace', 'WorkspaceService.ListWorkspaces']

const all = [...operatorScopes, 'visitors:act', 'deliveries:work'].join(' ')
const methods = servedMethods()
const isOperators = (method: DescMethod) => operatorScopes.has(getOption(method, scope))

const cores = testCores()
let things: Things
let visitorGrant: string
/** Hashes of all documents before the calls with the token of another workspace. */
let before: Record<string, string>
/** Id of another workspace. */
let elsewhere: string

beforeAll(async () => {
  const session = await cores.newSession()
  visitorGrant = session.accessGrant
  things = await thingsOf(cores, session.sessionId, session.conversationId)
  elsewhere = (await cores.core.workspaces.createWorkspace('Elsewhere')).workspaceId
  before = await untilQuiet()
})

const bearer = (token: string) => `Bearer ${token}`
const session = async (claims: object = {}, more: object = {}) =>
  bearer(await signWorkspaceSession({ claims: { wid: things.workspaceId, scope: all, ...claims }, ...more }))
const seconds = () => Math.floor(Date.now() / 1000)

/** Hashes of all stored documents, except those that background work changes. */
async function documentHashes(): Promise<Record<string, string>> {
  const { wakeups: _, searchEntries: __, followers: ___, ...collections } = cores.core.database.collections
  const documents = await Promise.all(
    Object.entries(collections).map(async ([name, collection]) =>
      // The retention's sweep changes these fields at any time.
      (
        await (collection as Collections['workspaces'])
          .find({}, { projection: { sweepAt: 0, sweepToken: 0, sweepAfter: 0 } })
          .toArray()
      ).map((document): [string, string] => [
        `${name} ${document._id}`,
        createHash('sha256').update(JSON.stringify(document)).digest('hex'),
      ]),
    ),
  )
  return Object.fromEntries(documents.flat())
}

/**
 * Waits until no background work changes a document any more. Returns the hashes of all documents.
 */
async function untilQuiet(): Promise<Record<string, string>> {
  await cores.core.inbox.noted()
  let last = await documentHashes()
  await until('no document changes', async () => {
    await delay(500)
    const now = await documentHashes()
    const isQuiet = JSON.stringify(now) === JSON.stringify(last)
    last = now
    return isQuiet
  })
  return last
}

describe('the known scopes', () => {
  it.each(methods)('include the scope that the method %s requires', (_, method) => {
    const own = ['visitors:act', 'deliveries:work', 'bots:act']
    expect([...operatorScopes, ...own]).toContain(getOption(method, scope))
    for (const each of own) expect(operatorScopes).not.toContain(each)
  })

  it('are each required by at least one method', () => {
    const required = methods.map(([, method]) => getOption(method, scope))
    // RedactMessage requires this scope for messages of others only.
    const known = [...operatorScopes, 'messages:redact', 'visitors:act', 'deliveries:work', 'bots:act']
    expect(new Set([...required, 'messages:redact'])).toEqual(new Set(known))
  })
})

let invalidTokens: Record<string, string | undefined>
beforeAll(async () => {
  invalidTokens = {
    'no token': undefined,
    'an empty token': 'Bearer ',
    'another scheme': `Basic ${Buffer.from('operator:secret').toString('base64')}`,
    'a malformed token': 'Bearer a.b.c',
    'a visitor’s access grant': bearer(visitorGrant),
    'an expired session': await session({ exp: seconds() - 31 }),
    'a session without exp': await session({ exp: undefined }),
    'a session for another audience': await session({ aud: 'service.widget.public-api' }),
    'a session of another key': await session({}, { key: new Uint8Array(32).fill(5) }),
    'a session without a workspace': await session({ wid: undefined }),
  }
})

describe.each(methods)('the method %s', (named, method) => {
  const request = () => requests[named]?.(things) ?? {}

  it('fails with Unauthenticated without a valid token', async () => {
    const { workspaceId } = cores
    const grant = { subject: 'test', scopes: [getOption(method, scope)], lifetime: -1, workspaceId }
    const service = await cores.core.access.issue(grant)
    const tokens = { ...invalidTokens, 'an expired service token': bearer(service) }
    const answers = Object.entries(tokens).map(async ([token, authorization]) => [
      token,
      await call(cores, method, request(), authorization),
    ])
    expect(await Promise.all(answers)).toEqual(
      Object.keys(tokens).map((token) => [token, 'Unauthenticated Unauthenticated']),
    )
  })

  it('fails with PermissionDenied for a token with every scope except the required one', async () => {
    const others = all.split(' ').filter((each) => each !== getOption(method, scope))
    const service = bearer(await cores.core.access.issue({ subject: 'test', scopes: others }))
    for (const authorization of [await session({ scope: others.join(' ') }), await session({ scope: '' }), service])
      expect(await call(cores, method, request(), authorization)).toBe('PermissionDenied PermissionDenied')
  })

  if (!isOperators(method)) {
    it('fails with PermissionDenied for an operator, even if the session claims the required scope', async () => {
      expect(await call(cores, method, request(), await session())).toBe('PermissionDenied PermissionDenied')
    })
    return
  }

  it('has a sample request in `requests`', () => {
    expect(Object.keys(requests)).toContain(named)
  })

  it('reads no data of another workspace', async () => {
    const answer = await call(cores, method, request(), await session({ wid: elsewhere }))
    const refusal = globalMethods.includes(named) ? /^PermissionDenied PermissionDenied$/ : /^NotFound \w+$/
    expect(answer).toMatch(refusal)
  })
})

it('no method has changed a document of another workspace in the tests above', async () => {
  expect(await documentHashes()).toEqual(before)
})

describe('an operator whose request names no workspace', () => {
  it.each(['ListConversations', 'ListLeads', 'ListDeliveries', 'ListSubscriptions', 'ListInstallations'])(
    'gets the data of their own workspace from %s',
    async (name) => {
      const [, method] = methods.find(([named]) => named.endsWith(`.${name}`))!
      const listed = async (wid: string) => {
        const headers = new Headers({ authorization: await session({ wid }) })
        const transport = transportTo(cores.core)
        const values = createContextValues()
        const { message } = await transport.unary(method as DescMethodUnary, undefined, 20_000, headers, {}, values)
        return Object.values(message).find(Array.isArray)?.length
      }
      expect([await listed(elsewhere), await listed(things.workspaceId)]).toEqual([0, 1])
    },
  )
})

/**
 * Creates objects for a call of a method. If the call deletes a workspace, connection or
 * installation, creates new ones for it, because other tests use the shared ones.
 */
async function ownThings(isDeleted: boolean) {
  const fresh = await cores.newSession()
  const own = await thingsOf(cores, fresh.sessionId, fresh.conversationId)
  if (!isDeleted) return own
  const { publicSiteKey: siteKey, ...site } = await cores.newSite()
  return { ...own, ...site, siteKey }
}

// Keep this block last, because effects of its calls continue in the background.
describe.each(methods.filter(([, method]) => isOperators(method)))('the method %s', (named, method) => {
  it('authorizes an operator of the workspace, unless the method is global', async () => {
    const own = await ownThings(/\.Delete(Workspace|Connection|Installation)$/.test(named))
    const answer = await call(cores, method, requests[named]!(own), await session({ wid: own.workspaceId }))
    if (globalMethods.includes(named)) expect(answer).toBe('PermissionDenied PermissionDenied')
    // The command of the request is a navigation, so it has no screenshot.
    else if (named === 'CommandService.GetScreenshot') expect(answer).toMatch(/^NotFound/)
    // The attempt still waits for a worker, so it cannot be retried.
    else if (named === 'LeadService.RetryDeliveryAttempt') expect(answer).toBe('FailedPrecondition AttemptNotRetryable')
    else expect(answer).toBe('ok')
  })
})

describe('a method that requires an access grant', () => {
  it('rejects a workspace session in place of the grant', async () => {
    const service = bearer(await cores.core.access.issue({ subject: 'gateway', scopes: ['visitors:act'] }))
    const accessGrant = (await session()).slice('Bearer '.length)
    const credentials = { accessGrant, origin: site }
    const scoped = methods.filter(([, method]) => method.input.fields.some(({ name }) => name === 'credentials'))
    expect(scoped.length).toBeGreaterThan(8)
    for (const [named, method] of scoped) {
      const form = named.endsWith('.SubmitForm') ? { form: 1 } : {}
      const typing = named.endsWith('.SetVisitorTyping') ? { state: 1 } : {}
      const close = named.endsWith('.CloseSession') ? { scope: 1 } : {}
      const consent = named.endsWith('.RecordConsent') ? { decision: 1, policyVersion: '1' } : {}
      const answer = await call(cores, method, { credentials, ...form, ...typing, ...close, ...consent }, service)
      expect([named, answer]).toEqual([named, 'Unauthenticated GrantInvalid'])
    }
  })
})

describe('a stream of an operator', () => {
  it('ends when the session of the operator expires', async () => {
    const [, method] = methods.find(([named]) => named === 'MessagingService.WatchConversations')!
    const headers = new Headers({ authorization: await session({ exp: seconds() + 2 }) })
    const input = (async function* () {
      yield {}
    })()
    const { message } = await transportTo(cores.core).stream(
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
