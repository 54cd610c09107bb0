import { type DescMethod, getOption } from '@bufbuild/protobuf'
import { scope } from '#proto/access/v1/access_pb.js'
import type { TestCores } from '../../core/test/cores.ts'
import { call, requests, servedMethods, thingsOf } from '../../core/test/operator-calls.ts'
import { accessOf } from '../../core/transport/caller.ts'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { createWorkspace } from '../../core/workspaces/workspaces.ts'
import { signWorkspaceSession } from '../support/workspace-session.ts'
import type { Row } from './matrix.ts'

const everyScope = [...operatorScopes, 'visitors:act', 'deliveries:work', 'cores:announce']

/**
 * Creates one object of each kind. Returns a function that calls each internal RPC method for these
 * objects, as each kind of caller that must be refused.
 */
export async function methodWalk(cores: TestCores): Promise<() => Promise<Map<string, Row>>> {
  const session = await cores.newSession()
  const things = await thingsOf(cores, session.sessionId, session.conversationId)
  const { workspaceId: elsewhere } = await createWorkspace(cores.core, 'Elsewhere')
  const bearer = async (token: Promise<string> | string) => `Bearer ${await token}`
  /** Returns a caller whose credential is the same for every method. */
  const same = async (credential: Promise<string>) => {
    const value = await credential
    return () => value
  }
  const operator = (claims: object, more: object = {}) =>
    bearer(
      signWorkspaceSession({ claims: { wid: things.workspaceId, scope: everyScope.join(' '), ...claims }, ...more }),
    )
  const service = (scopes: string[], lifetime?: number) =>
    // The token of a bot needs a workspace. Other tokens here have none.
    bearer(
      accessOf(cores.core).issue({
        subject: 'test',
        scopes,
        lifetime,
        ...(scopes.includes('bots:act') && { workspaceId: things.workspaceId }),
      }),
    )

  const callers: Record<string, (method: DescMethod) => Promise<string> | string | undefined> = {
    'no credential': () => undefined,
    'an empty token': () => 'Bearer ',
    'another scheme': () => `Basic ${Buffer.from('operator:secret').toString('base64')}`,
    'a malformed token': () => 'Bearer a.b.c',
    'another key': await same(operator({}, { key: new Uint8Array(32).fill(5) })),
    'another audience': await same(operator({ aud: 'service.widget.public-api' })),
    'a visitor’s grant': () => `Bearer ${session.accessGrant}`,
    'an expired session': await same(operator({ exp: Math.floor(Date.now() / 1000) - 31 })),
    'a session that never expires': await same(operator({ exp: undefined })),
    'a session without a workspace': await same(operator({ wid: undefined })),
    'an expired service token': (method) => service([getOption(method, scope)], -1),
    'no scope': await same(operator({ scope: '' })),
    'every other scope': (method) => operator({ scope: others(method).join(' ') }),
    'a service token with every other scope': (method) => service(others(method)),
    'another workspace': await same(operator({ wid: elsewhere })),
  }

  async function rowOf([name, method]: [string, DescMethod]): Promise<[string, Row]> {
    const row: Row = { scope: getOption(method, scope) }
    for (const [caller, authorization] of Object.entries(callers)) {
      const answer = await call(cores, method, requests[name]?.(things) ?? {}, await authorization(method))
      // An error answer has the form `<Connect code> <public error code>`.
      row[caller] = answer === 'ok' ? 'answered' : answer.split(' ').at(-1)!
    }
    return [name, row]
  }

  return async () => new Map(await Promise.all(servedMethods().map(rowOf)))
}

const others = (method: DescMethod) => everyScope.filter((each) => each !== getOption(method, scope))
