import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { signAssertion } from '../support/assertion.ts'
import { allCapabilities } from '../support/capabilities.ts'
import { imageOf } from '../support/images.ts'
import { newResources } from '../support/resources.ts'
import type { RunningStack } from '../support/stack.ts'
import type { KnownValues } from './schema-values.ts'

/** A session, and one resource of each kind that a request can name. */
export interface Fixtures {
  origin: string
  accessGrant: string
  known: KnownValues
  /** Service tokens for the core, by scope. */
  serviceTokens: { operator: string; gateway: string; delivery: string }
  workspaceSession: string
  picture: Uint8Array
}

/** Restores site settings that earlier cases may have changed. */
export async function restoreSite({ demo, operator }: RunningStack): Promise<void> {
  const { workspaces } = operator()
  await workspaces.setConnectionStatus({ connectionId: 'con_demo', status: ConnectionStatus.ENABLED })
  await workspaces.updateInstallation({
    siteKey: demo.siteKey,
    enabled: true,
    origins: [demo.origin],
    capabilities: allCapabilities,
  })
}

/**
 * Creates a session, conversation, commands, lead and delivery, so that some fuzz requests name
 * existing resources.
 */
export async function newFixtures(stack: RunningStack): Promise<Fixtures> {
  const { demo, dataDir } = stack
  const { origin, siteKey, workspaceId, serviceToken, workspaceSession, identity } = demo
  const token = (name: string) => readFile(join(dataDir, `${name}.token`), 'utf8')
  const serviceTokens = { operator: serviceToken, gateway: await token('gateway'), delivery: await token('delivery') }
  const visitor = await stack.newVisitor()
  const { sessionId, conversationId, accessGrant, renewalToken } = visitor.session
  const sent = await visitor.send('Hello')
  const resources = await newResources(stack.operator(), visitor, { origin, workspaceId })
  const commands = [resources.navigationId, resources.screenshotId]
  const { leadId, subscriptionId, attemptId } = resources
  const operations = [sent.body.clientOperationId, ...Array.from({ length: 20 }, () => randomUUID())]

  const known = {
    publicSiteKey: [siteKey],
    siteKey: [siteKey],
    clientInstanceId: ['browser-1', randomUUID()],
    sessionId: [sessionId],
    conversationId: [conversationId],
    renewalToken: [renewalToken],
    assertion: [1, 2, 3].map((index) =>
      signAssertion({ siteKey, ...identity }, { claims: { sub: `customer-${index}` } }),
    ),
    clientOperationId: operations,
    idempotencyKey: operations,
    commandId: commands,
    requestId: commands,
    leadId: [leadId],
    subscriptionId: [subscriptionId],
    attemptId: [attemptId],
    workspaceId: [workspaceId],
    connectionId: ['con_demo'],
    messageId: [sent.body.messageId],
    lastSeenEventId: ['x-1', ''],
    destinationUrl: ['https://93.184.216.34/hook'],
    url: [`${origin}/a`, 'https://shop.example/'],
    credentials: [{ accessGrant, origin }],
    accessGrant: [accessGrant],
    origin: [origin],
    contentType: ['text'],
    state: ['read', 'started', 1, 2],
    locale: ['en', 'de-AT'],
    limit: [1, 50],
  }
  return { origin, accessGrant, known, serviceTokens, workspaceSession, picture: imageOf('image/png', 500) }
}

/**
 * Creates a workspace, a connection and an installation that a call may delete. Returns fixtures
 * that name them.
 */
export async function deletable(stack: RunningStack, fixtures: Fixtures): Promise<Fixtures> {
  const { workspaces } = stack.operator()
  const { workspaceId } = (await workspaces.createWorkspace({ name: 'to delete' })).workspace!
  const { connectionId } = (await workspaces.createConnection({ workspaceId, name: 'to delete' })).connection!
  const { installation } = await workspaces.createInstallation({ connectionId, origins: ['https://gone.example'] })
  const siteKey = [installation!.publicSiteKey]
  const known = { ...fixtures.known, workspaceId: [workspaceId], connectionId: [connectionId], siteKey }
  // Leave out the workspace session, because with it a call could delete the site's workspace.
  return { ...fixtures, known, workspaceSession: 'a.b.c' }
}
