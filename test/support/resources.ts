import { randomUUID } from 'node:crypto'
import type { Operator } from './operator.ts'
import type { Visitor } from './visitor.ts'

/** Creates a workspace with one site, for tests that change the site's connection or origins. */
export async function newSite({ workspaces }: Operator, origins: string[], settings: object = {}) {
  const { workspaceId } = (await workspaces.createWorkspace({ name: 'Another' })).workspace!
  const { connectionId } = (await workspaces.createConnection({ workspaceId, name: 'Site' })).connection!
  const { installation, identitySecret } = await workspaces.createInstallation({ connectionId, origins, ...settings })
  return { workspaceId, connectionId, siteKey: installation!.publicSiteKey, identitySecret: identitySecret! }
}

/** Ids of one resource of each kind that a request of a visitor or an operator can name. */
export interface Resources {
  navigationId: string
  screenshotId: string
  leadId: string
  subscriptionId: string
  attemptId: string
}

/**
 * Creates a navigation request, a screenshot request and a lead with one delivery. The delivery
 * stays unsent unless a worker runs.
 */
export async function newResources(
  { commands, leads }: Operator,
  { session: { sessionId } }: Visitor,
  { origin, workspaceId }: { origin: string; workspaceId: string },
): Promise<Resources> {
  const navigation = await commands.requestNavigation({ sessionId, url: `${origin}/a` })
  const screenshot = await commands.requestScreenshot({ sessionId })
  const { leadId } = await leads.captureLead({ workspaceId, source: 'test', fields: { name: 'Ada' } })
  const destinationUrl = 'https://93.184.216.34/hook'
  const { subscriptionId } = (await leads.createSubscription({ workspaceId, destinationUrl })).subscription!
  const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
  return {
    navigationId: navigation.command!.commandId,
    screenshotId: screenshot.command!.commandId,
    leadId,
    subscriptionId,
    attemptId: attempt!.attemptId,
  }
}
