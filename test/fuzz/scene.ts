import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { signAssertion } from '../support/assertion.ts'
import { imageOf } from '../support/images.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import type { Stack } from '../support/stack.ts'
import { startVisitor } from '../support/visitor.ts'
import type { KnownValues } from './schema-values.ts'

/** A session with one of each resource that requests can name. */
export interface Scene {
  origin: string
  accessGrant: string
  known: KnownValues
  /** Service tokens for the core, by scope. */
  serviceTokens: { operator: string; gateway: string; delivery: string }
  workspaceSession: string
  picture: Uint8Array
}

/** All capabilities, so that every route is available. */
const capabilities = {
  identity: true,
  typing: true,
  pageContext: true,
  navigation: true,
  screenshots: true,
  preChatForm: true,
  offlineForm: true,
  messageRetryRoute: true,
}

/** Restores site settings that earlier cases may have changed. */
export async function restoreSite({ demo, cores }: Stack): Promise<void> {
  const { workspaces } = operatorOf(cores[0]!.url, demo.serviceToken)
  await workspaces.setConnectionStatus({ connectionId: 'con_demo', status: ConnectionStatus.ENABLED })
  await workspaces.updateInstallation({ siteKey: demo.siteKey, enabled: true, origins: [demo.origin], capabilities })
}

/** Creates a session, conversation, commands, lead and delivery, so that valid requests succeed. */
export async function newScene({ demo, dataDir, gateways, cores }: Stack): Promise<Scene> {
  const { origin, siteKey, workspaceId, serviceToken, workspaceSession, identity } = demo
  const token = (name: string) => readFile(join(dataDir, `${name}.token`), 'utf8')
  const serviceTokens = { operator: serviceToken, gateway: await token('gateway'), delivery: await token('delivery') }
  const visitor = await startVisitor({ gatewayUrl: gateways[0]!.url, origin, siteKey })
  const { sessionId, conversationId, accessGrant, renewalToken } = visitor.session
  const sent = await visitor.send('Hello')
  const operator = operatorOf(cores[0]!.url, serviceToken)
  const commands = await newCommands(operator, sessionId)
  const { leadId, subscriptionId, attemptId } = await newDelivery(operator, workspaceId)
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
    // Claims must return at once.
    waitMs: [0],
  }
  return { origin, accessGrant, known, serviceTokens, workspaceSession, picture: imageOf('image/png', 500) }
}

async function newCommands({ commands }: Operator, sessionId: string): Promise<string[]> {
  const navigation = await commands.requestNavigation({ sessionId, url: 'http://localhost:8081/a' })
  const screenshot = await commands.requestScreenshot({ sessionId })
  return [navigation.command!.commandId, screenshot.command!.commandId]
}

async function newDelivery({ leads }: Operator, workspaceId: string) {
  const { leadId } = await leads.captureLead({ workspaceId, source: 'fuzz', fields: { name: 'Ada' } })
  const { subscription } = await leads.createSubscription({
    workspaceId,
    destinationUrl: 'https://93.184.216.34/hook',
    mappedFields: [],
    automatic: false,
  })
  const { subscriptionId } = subscription!
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return { leadId, subscriptionId, attemptId: attempt!.attemptId }
}
