import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { newResources, newSite, type Resources } from '../support/resources.ts'
import type { RunningStack } from '../support/stack.ts'
import type { Visitor } from '../support/visitor.ts'
import { signWorkspaceSession } from '../support/workspace-session.ts'
import { createGrantForger } from './forged-grants.ts'

/** A visitor and one resource of each kind that a route can name. */
export interface VisitorResources extends Resources {
  visitor: Visitor
  siteKey: string
}

/** Visitors, credentials and resources for the authorization tests. */
export interface Fixtures {
  origin: string
  mine: VisitorResources
  /** Another visitor of the same site. */
  theirs: VisitorResources
  forge: Awaited<ReturnType<typeof createGrantForger>>
  /** Grants of ended sessions, by the reason for which the session ended. */
  ended: Record<'closed' | 'revoked' | 'banned' | 'disabled', string>
  /** Grant of a visitor of another workspace, whose site has the same origin. */
  elsewhereGrant: string
  /** Signs a workspace session. Default key: the service's own key. */
  workspaceSession(change?: { claims?: object; key?: Uint8Array }): Promise<string>
  serviceToken: string
  workspaceId: string
}

/**
 * Creates two visitors, another workspace, and one ended session for each reason for which a
 * session can end.
 */
export async function newFixtures(stack: RunningStack): Promise<Fixtures> {
  const { demo, dataDir, newVisitor } = stack
  const { origin, siteKey, workspaceId, serviceToken } = demo
  const operator = stack.operator()
  const newVisitorResources = async () => {
    const visitor = await newVisitor()
    await visitor.send('Hello')
    return { visitor, siteKey, ...(await newResources(operator, visitor, demo)) }
  }

  const [closed, revoked, banned] = [await newVisitor(), await newVisitor(), await newVisitor()]
  const keyed = { headers: { 'Idempotency-Key': randomUUID() } }
  await closed.call('POST', '/sessions/close', { body: { scope: 'continuity' }, ...keyed })
  await operator.sessions.revokeSession({ sessionId: revoked.session.sessionId })
  await operator.sessions.banVisitor({ sessionId: banned.session.sessionId, reason: 'Spam' })
  const disabledSite = await newSite(operator, [origin])
  const disabled = await newVisitor({ siteKey: disabledSite.siteKey })
  await operator.workspaces.setConnectionStatus({
    connectionId: disabledSite.connectionId,
    status: ConnectionStatus.DISABLED,
  })
  const elsewhere = await newVisitor({ siteKey: (await newSite(operator, [origin])).siteKey })
  const secrets = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8'))

  return {
    origin,
    mine: await newVisitorResources(),
    theirs: await newVisitorResources(),
    forge: await createGrantForger(dataDir),
    ended: {
      closed: closed.session.accessGrant,
      revoked: revoked.session.accessGrant,
      banned: banned.session.accessGrant,
      disabled: disabled.session.accessGrant,
    },
    elsewhereGrant: elsewhere.session.accessGrant,
    workspaceSession: ({ claims = {}, key = new TextEncoder().encode(secrets.workspaceSessionSecret) } = {}) =>
      signWorkspaceSession({ claims: { wid: workspaceId, ...claims }, key }),
    serviceToken,
    workspaceId,
  }
}
