import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createKeyring, parseSecretKeys } from '../../core/keys/keyring.ts'
import { botScopes, createAccess, knownScopes } from '../../core/workspaces/access.ts'
import { dataFolderSecrets } from '../../serve/data-folder.ts'
import { type Operation, operationsOf } from '../fuzz/route-cases.ts'
import { signAssertion } from '../support/assertion.ts'
import { type LocalStack, startLocalStack } from '../support/local-stack.ts'
import { damaged } from '../support/nasty-values.ts'
import { testDatabase } from '../support/test-database.ts'
import type { Visitor } from '../support/visitor.ts'
import { type Fixtures, newFixtures } from './fixtures.ts'
import { WIDGET } from './matrix.ts'
import { routeRequests } from './routes.ts'

const database = testDatabase()

it('no credential buys a stronger one, or one that lives longer, on any route', { timeout: 180_000 }, async () => {
  const stack = await startLocalStack({ database, env: { RATE_LIMIT_FACTOR: '1000' } })
  const document = await (await fetch(`${stack.gateways[0]!.url}/docs/openapi.json`)).json()
  const operations = operationsOf(document)
  const { stronger, calls } = await walkCredentials(stack, operations, await newFixtures(stack))
  expect(stronger).toEqual([])
  expect(calls).toBeGreaterThan(operations.length * 20)
})

const decode = (jws: string) => JSON.parse(Buffer.from(jws.split('.')[1]!, 'base64url').toString())

/**
 * Calls each route with each credential. Returns each answer with a credential that is stronger than the one shown,
 * or that lives longer. Requests name no renewal token, except where it is the credential.
 */
async function walkCredentials(stack: LocalStack, operations: Operation[], fixtures: Fixtures) {
  const { demo, gateways } = stack
  const { origin, workspaceId, siteKey } = demo
  const { secretKeys } = await dataFolderSecrets(stack.dataDir)
  const access = createAccess(createKeyring(parseSecretKeys(secretKeys)), Date.now)
  const issue = (scopes: string[]) => access.issue({ subject: 'test', scopes, workspaceId, lifetime: 600 })
  const assertion = (sub: string) => signAssertion({ siteKey, ...demo.identity }, { claims: { sub } })
  const bearer = (token: string) => `Bearer ${token}`

  async function newVisitor(sub?: string): Promise<Visitor> {
    const visitor = await stack.newVisitor()
    if (sub !== undefined) {
      const headers = { 'Idempotency-Key': randomUUID() }
      const answer = await visitor.call('POST', '/sessions/identify', { body: { assertion: assertion(sub) }, headers })
      visitor.session = answer.body
    }
    return visitor
  }
  const console = async (method: string, scope: string, body: object) => {
    const url = `${demo.coreUrl}/service.console.v1.ConsoleService/${method}`
    const headers = { authorization: bearer(await issue([scope])), 'content-type': 'application/json' }
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await answer.json()) as Record<string, string>
  }
  const link = await console('CreateSignInLink', 'workspaces:write', { operator: 'ada' })
  const signedIn = await console('SignIn', 'visitors:act', { linkSecret: link.secret, displayName: 'Ada' })

  /** Each credential as its header, and the visitor whose session it belongs to. */
  const credentials: [name: string, show: (visitor: Visitor) => Promise<string> | string, sub?: string][] = [
    ['a grant', ({ session }) => bearer(session.accessGrant)],
    ['the grant of a verified visitor', ({ session }) => bearer(session.accessGrant), 'known'],
    [
      'an expired grant',
      async ({ session }) =>
        bearer(await fixtures.forge(session.accessGrant, { claims: { exp: Math.floor(Date.now() / 1000) - 5 } })),
    ],
    ['a renewal token', ({ session }) => bearer(session.renewalToken)],
    ['an assertion', () => bearer(assertion('known'))],
    ['a workspace session', async () => bearer(await fixtures.workspaceSession())],
    ['a console session', () => `Console ${signedIn.sessionSecret}`],
    ['a token of a bot', async () => bearer(await issue(botScopes))],
    ...knownScopes
      .filter((scope) => scope !== 'bots:act')
      .map((scope): [string, () => Promise<string>] => [
        `a token for ${scope}`,
        async () => bearer(await issue([scope])),
      ]),
  ]

  const stronger: string[] = []
  let calls = 0
  for (const { method, path } of operations) {
    const route = `${method} ${path.replace(WIDGET, '')}`
    for (const [name, show, sub] of credentials) {
      const visitor = await newVisitor(sub)
      const { sessionId, accessGrant, renewalToken } = visitor.session
      const resources = { ...fixtures.mine, visitor }
      const { path: target, body, contentType } = routeRequests[route]!(resources)
      const bodies = [body]
      if (route === 'POST /sessions/identify') bodies.push({ assertion: assertion(sub ?? 'new') })
      const wrongToken = damaged(renewalToken)
      if (route === 'POST /sessions/identify')
        bodies.push({ assertion: assertion(sub ?? 'new'), renewalToken: wrongToken })
      if (route === 'DELETE /sessions/identify') bodies.push({ renewalToken: wrongToken })
      if (route === 'POST /sessions/renew') bodies[0] = { sessionId, renewalToken: accessGrant }
      for (const sent of bodies) {
        const answer = await fetch(`${gateways[0]!.url}${target.startsWith('/api/') ? '' : WIDGET}${target}`, {
          method,
          headers: {
            origin,
            'x-service-widget-version': '1.0',
            'idempotency-key': (sent as { clientOperationId?: string })?.clientOperationId ?? randomUUID(),
            authorization: await show(visitor),
            ...(sent !== undefined && { 'content-type': contentType ?? 'application/json' }),
          },
          body:
            sent === undefined || sent instanceof Uint8Array ? (sent as Uint8Array<ArrayBuffer>) : JSON.stringify(sent),
          signal: AbortSignal.timeout(10_000),
        })
        calls += 1
        const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream')
        if (isStream) await answer.body?.cancel()
        const text = isStream ? '' : await answer.text()
        const given = text.startsWith('{') ? JSON.parse(text) : {}
        const grants = text.match(/[\w-]+\.[\w-]{20,}\.[\w-]{20,}/g) ?? []
        const problems = grants
          .map(decode)
          .filter(({ sid, exp }) => sid === sessionId && exp > decode(accessGrant).exp && !asserts(sent, given))
          .map(() => 'a grant that lives longer')
        const isOwn = given.sessionId === undefined || given.sessionId === sessionId
        if (isOwn && given.renewalToken) problems.push('a renewal token')
        if (isOwn === false && name !== 'a grant' && !sub && route !== 'POST /sessions') problems.push('a session')
        if (/whsec_|sessionSecret/.test(text) || answer.headers.has('set-cookie')) problems.push('another secret')
        stronger.push(...problems.map((problem) => `${route} gives ${problem} for ${name}`))
      }
    }
  }
  return { stronger, calls }
}

/** Whether the host backend vouched for the visitor, so that a new grant is allowed. */
const asserts = (sent: unknown, { identity }: { identity?: { state: string } }) =>
  (sent as { assertion?: string })?.assertion !== undefined && identity?.state === 'verified'
