import { type DescMethod, type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { Code, type ConnectError, createContextValues } from '@connectrpc/connect'
import { beforeAll, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import { testCores } from '../test/cores.ts'
import { call, requests, servedMethods, type Things, thingsOf } from '../test/operator-calls.ts'
import { transportTo } from '../test/transports.ts'
import { site } from '../test/visitor-credentials.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { createWorkspace } from '../workspaces/workspaces.ts'
import { accessOf } from './caller.ts'

/** Global methods: a token of one workspace cannot call them. */
const globalMethods = ['WorkspaceService.CreateWorkspace', 'WorkspaceService.ListWorkspaces']

const all = [...operatorScopes, 'visitors:act', 'deliveries:work'].join(' ')
const methods = servedMethods()
const isOperators = (method: DescMethod) => operatorScopes.has(getOption(method, scope))

const cores = testCores({ started: false })
let things: Things
/** Id of another workspace. */
let elsewhere: string

beforeAll(async () => {
  const session = await cores.newSession()
  things = await thingsOf(cores, session.sessionId, session.conversationId)
  elsewhere = (await createWorkspace(cores.core, 'Elsewhere')).workspaceId
})

const bearer = (token: string) => `Bearer ${token}`
const session = async (claims: object = {}, more: object = {}) =>
  bearer(await signWorkspaceSession({ claims: { wid: things.workspaceId, scope: all, ...claims }, ...more }))
const seconds = () => Math.floor(Date.now() / 1000)

it('the scopes that methods require are those of operators and three others', () => {
  const own = ['visitors:act', 'deliveries:work', 'bots:act']
  for (const each of own) expect(operatorScopes).not.toContain(each)
  const required = methods.map(([, method]) => getOption(method, scope))
  // RedactMessage requires this scope for messages of others only.
  const known = [...operatorScopes, 'messages:redact', ...own]
  expect(new Set([...required, 'messages:redact'])).toEqual(new Set(known))
})

it.each(['ListConversations', 'ListLeads', 'ListDeliveries', 'ListSubscriptions', 'ListInstallations'])(
  'an operator whose request names no workspace gets the data of their own workspace from %s',
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

it('a method that requires an access grant rejects a workspace session in place of the grant', async () => {
  const service = bearer(await accessOf(cores.core).issue({ subject: 'gateway', scopes: ['visitors:act'] }))
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

it('a stream of an operator ends when the session of the operator expires', async () => {
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

/** Methods that remove what others need. They are called last, in this order. */
const removing = 'Redact Close Revoke Ban Unban Erase DeleteHook DeleteSub DeleteI DeleteC DeleteW'.split(' ')
const rank = (name: string) => removing.findIndex((part) => name.includes(`.${part}`))

// The last test, because it removes the workspace.
// test/authorization calls each method as every caller that it must refuse.
it('each method authorizes an operator of the workspace, unless it is global', async () => {
  const answers: Record<string, string> = {}
  const operators = methods.filter(([, method]) => isOperators(method))
  for (const [name, method] of operators.toSorted(([one], [other]) => rank(one) - rank(other)))
    answers[name] = await call(cores, method, requests[name]!(things), await session())
  const refused = Object.fromEntries(Object.entries(answers).filter(([, answer]) => answer !== 'ok'))
  expect(refused).toEqual({
    ...Object.fromEntries(globalMethods.map((name) => [name, 'PermissionDenied PermissionDenied'])),
    // These methods are about the account of a session of the console.
    ...Object.fromEntries(
      [
        'AddPasskey',
        'BeginPasskey',
        'ConfirmOwnMail',
        'GetOwnAccount',
        'GetOwnNotifications',
        'RemovePasskey',
        'ReportAttention',
        'SetPushSubscription',
        'UpdateOwnAccount',
        'UpdateOwnNotifications',
      ].map((name) => [`OperatorService.${name}`, 'PermissionDenied PermissionDenied']),
    ),
    // The command of the request is a navigation, so it has no screenshot.
    'CommandService.GetScreenshot': expect.stringMatching(/^NotFound/),
    // The attempt still waits for a worker, so it cannot be retried.
    'LeadService.RetryDeliveryAttempt': 'FailedPrecondition AttemptNotRetryable',
  })
})
