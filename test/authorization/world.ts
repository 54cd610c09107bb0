import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { type Operator, operatorOf } from '../support/operator.ts'
import type { Stack } from '../support/stack.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'
import { signWorkspaceSession } from '../support/workspace-session.ts'
import { createGrantForger } from './forged-grants.ts'

/** A visitor with one of each resource that a route can name. */
export interface Things {
  visitor: Visitor
  navigationId: string
  screenshotId: string
  leadId: string
  subscriptionId: string
  attemptId: string
  siteKey: string
}

export interface World {
  origin: string
  mine: Things
  /** Another visitor of the same site. */
  theirs: Things
  forge: Awaited<ReturnType<typeof createGrantForger>>
  /** Grants of ended sessions, by reason. */
  ended: Record<'closed' | 'revoked' | 'banned' | 'disabled', string>
  /** Grant of another workspace on the same origin. */
  elsewhereGrant: string
  /** Signs a workspace session, with the service's own key by default. */
  workspaceSession(change?: { claims?: object; key?: Uint8Array }): Promise<string>
  serviceToken: string
  workspaceId: string
}

/** Creates two visitors, another workspace, and a session ended in each possible way. */
export async function newWorld(stack: Stack): Promise<World> {
  const { demo, dataDir, gateways, cores } = stack
  const { origin, siteKey, workspaceId, serviceToken } = demo
  const operator = operatorOf(cores[0]!.url, serviceToken)
  const gatewayUrl = gateways[0]!.url
  const newVisitor = (key = siteKey) => startVisitor({ gatewayUrl, origin, siteKey: key })

  const [closed, revoked, banned] = [await newVisitor(), await newVisitor(), await newVisitor()]
  const keyed = { headers: { 'Idempotency-Key': randomUUID() } }
  await closed.call('POST', '/sessions/close', { body: { scope: 'continuity' }, ...keyed })
  await operator.sessions.revokeSession({ sessionId: revoked.session.sessionId })
  await operator.sessions.banVisitor({ sessionId: banned.session.sessionId, reason: 'Spam' })
  const disabledSite = await newSite(operator, origin)
  const disabled = await newVisitor(disabledSite.siteKey)
  await operator.workspaces.setConnectionStatus({
    connectionId: disabledSite.connectionId,
    status: ConnectionStatus.DISABLED,
  })
  const elsewhere = await newVisitor((await newSite(operator, origin)).siteKey)
  const secrets = JSON.parse(await readFile(join(dataDir, 'secrets.json'), 'utf8'))

  return {
    origin,
    mine: await newThings(operator, await newVisitor(), workspaceId, siteKey),
    theirs: await newThings(operator, await newVisitor(), workspaceId, siteKey),
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

async function newSite({ workspaces }: Operator, origin: string) {
  const { workspace } = await workspaces.createWorkspace({ name: 'Elsewhere' })
  const { workspaceId } = workspace!
  const { connection } = await workspaces.createConnection({ workspaceId, name: 'Site' })
  const { connectionId } = connection!
  const { installation } = await workspaces.createInstallation({ connectionId, origins: [origin] })
  return { connectionId, siteKey: installation!.publicSiteKey }
}

async function newThings(
  { commands, leads }: Operator,
  visitor: Visitor,
  workspaceId: string,
  siteKey: string,
): Promise<Things> {
  const { sessionId } = visitor.session
  await visitor.send('Hello')
  const navigation = await commands.requestNavigation({ sessionId, url: 'http://localhost:8081/a' })
  const screenshot = await commands.requestScreenshot({ sessionId })
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: {} })
  const { subscription } = await leads.createSubscription({
    workspaceId,
    destinationUrl: 'https://93.184.216.34/hook',
    mappedFields: [],
    automatic: false,
  })
  const { subscriptionId } = subscription!
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return {
    visitor,
    navigationId: navigation.command!.commandId,
    screenshotId: screenshot.command!.commandId,
    leadId,
    subscriptionId,
    attemptId: attempt!.attemptId,
    siteKey,
  }
}
