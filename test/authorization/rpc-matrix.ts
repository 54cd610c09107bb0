import { type DescMethod, getOption } from '@bufbuild/protobuf'
import { scope } from '#proto/access/v1/access_pb.js'
import type { TestCores } from '../../core/test/cores.ts'
import { call, requests, servedMethods, thingsOf } from '../../core/test/operator-calls.ts'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { signWorkspaceSession } from '../support/workspace-session.ts'
import type { Row } from './matrix.ts'

const everyScope = [...operatorScopes, 'visitors:act', 'deliveries:work', 'cores:announce']

/** Calls each internal RPC method as each kind of caller. */
export async function walkMethods(cores: TestCores): Promise<Map<string, Row>> {
  const session = await cores.newSession()
  const things = await thingsOf(cores, session.sessionId, session.conversationId)
  const { workspaceId: elsewhere } = await cores.core.workspaces.createWorkspace('Elsewhere')
  const operator = (claims: object, more: object = {}) =>
    signWorkspaceSession({ claims: { wid: things.workspaceId, scope: everyScope.join(' '), ...claims }, ...more })
  const service = (scopes: string[], lifetime?: number) =>
    // The token of a bot needs a workspace. Other tokens here have none.
    cores.core.access.issue({
      subject: 'test',
      scopes,
      lifetime,
      ...(scopes.includes('bots:act') && { workspaceId: things.workspaceId }),
    })

  const callers: Record<string, (method: DescMethod) => Promise<string | undefined> | string> = {
    'no credential': async () => undefined,
    'a malformed token': () => 'a.b.c',
    'another key': () => operator({}, { key: new Uint8Array(32).fill(5) }),
    'another audience': () => operator({ aud: 'service.widget.public-api' }),
    'a visitor’s grant': () => session.accessGrant,
    'an expired session': () => operator({ exp: Math.floor(Date.now() / 1000) - 31 }),
    'an expired service token': (method) => service([getOption(method, scope)], -1),
    'every other scope': (method) => operator({ scope: others(method).join(' ') }),
    'a service token with every other scope': (method) => service(others(method)),
    'another workspace': () => operator({ wid: elsewhere }),
  }
  const rows = new Map<string, Row>()
  for (const [name, method] of servedMethods()) {
    const row: Row = { scope: getOption(method, scope) }
    for (const [caller, token] of Object.entries(callers)) {
      const given = await token(method)
      const authorization = given === undefined ? undefined : `Bearer ${given}`
      const answer = await call(cores, method, requests[name]?.(things) ?? {}, authorization)
      // An error answer has the form `<Connect code> <public error code>`.
      row[caller] = answer === 'ok' ? 'answered' : answer.split(' ').at(-1)!
    }
    rows.set(name, row)
  }
  return rows
}

const others = (method: DescMethod) => everyScope.filter((each) => each !== getOption(method, scope))
