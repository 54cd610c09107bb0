import { requestNavigation } from '../commands/commands.ts'
import { createAttempt } from '../deliveries/deliveries.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { createSubscription } from '../deliveries/subscriptions.ts'
import { createConnection, createInstallation, createWorkspace } from '../workspaces/workspaces.ts'
import { addResults, claimDue } from './claims.ts'
import type { TestCores } from './cores.ts'
import type { Clients } from './operator-clients.ts'
import { site } from './visitor-credentials.ts'

/** Ids and values of the objects that a test prepares for a write. */
export interface Scene {
  name: string
  workspaceId: string
  connectionId: string
  siteKey: string
  sessionId: string
  leadId: string
  subscriptionId: string
  attemptId: string
  deliveryId: string
  commandId: string
}

/** The ids of a response, and its secret if there is one. */
export type Answer = { id: string | undefined; secret?: string | undefined }

export interface Write {
  isKeyed: boolean
  /** Whether the method requires a token without a workspace. */
  isGlobal?: true
  scene(cores: TestCores): Promise<Scene>
  call(clients: Clients, scene: Scene, key: string | undefined, input: string): Promise<Answer>
  /** Counts how often the write has taken effect. */
  effects(cores: TestCores, scene: Scene): Promise<number>
  /** Returns the state that the write changes. Another operator may change the same state. */
  state?(cores: TestCores, scene: Scene): Promise<unknown>
}

/** An IP address, so that the test needs no DNS. */
export const destinationUrl = 'https://93.184.216.34/hook'
export const fieldNamed = (name: string) => name.replace(' ', '-')
export const desk = { subject: 'desk' }
let scenes = 0

const nothing: Omit<Scene, 'name'> = {
  workspaceId: '',
  connectionId: '',
  siteKey: '',
  sessionId: '',
  leadId: '',
  subscriptionId: '',
  attemptId: '',
  deliveryId: '',
  commandId: '',
}

export const bareScene = async (): Promise<Scene> => ({ ...nothing, name: `Scene ${++scenes}` })

export async function workspaceScene({ core }: TestCores): Promise<Scene> {
  const scene = await bareScene()
  const { workspaceId } = await createWorkspace(core, scene.name)
  return { ...scene, workspaceId }
}

export async function siteScene(cores: TestCores): Promise<Scene> {
  const { core, workspaceId } = cores
  const scene = await bareScene()
  const { connectionId } = await createConnection(core, workspaceId, scene.name, undefined)
  const { installation } = await createInstallation(core, connectionId, { origins: [site] }, undefined)
  return { ...scene, connectionId, siteKey: installation.publicSiteKey }
}

export async function leadScene(cores: TestCores): Promise<Scene> {
  const { core, workspaceId } = cores
  const leadId = await captureLead(core, { workspaceId, source: 'test', fields: {} }, undefined)
  const settings = { workspaceId, destinationUrl, mappedFields: [], automatic: false }
  const { subscriptionId } = await createSubscription(core, settings, desk)
  return { ...(await bareScene()), leadId, subscriptionId }
}

export async function failedScene(cores: TestCores): Promise<Scene> {
  const { core } = cores
  const scene = await leadScene(cores)
  const { leadId, subscriptionId, name } = scene
  const idempotencyKey = name.replace(' ', '-')
  const { attempt } = await createAttempt(core, { leadId, subscriptionId, idempotencyKey }, desk)
  const { attemptId, deliveryId } = attempt
  const claimed = await claimDue(core, { limit: 1000 })
  const result = { durationMs: 1, facts: { status: 400 } }
  await addResults(
    core,
    claimed.map(({ deliveryId, attemptId, claimId }) => ({ deliveryId, attemptId, claimId, ...result })),
  )
  return { ...scene, attemptId, deliveryId }
}

export async function sessionScene(cores: TestCores): Promise<Scene> {
  const { sessionId } = await cores.newSession()
  return { ...(await bareScene()), sessionId }
}

export async function commandScene(cores: TestCores): Promise<Scene> {
  const scene = await sessionScene(cores)
  const request = { sessionId: scene.sessionId, url: `${site}/a` }
  const { content } = await requestNavigation(cores.core, request, desk)
  return { ...scene, commandId: content.commandId }
}

export const collectionsOf = ({ core }: TestCores) => core.database.collections
export const idempotencyOf = (key: string | undefined) => (key === undefined ? {} : { idempotencyKey: key })
export const clientOperationOf = (key: string | undefined) => (key === undefined ? {} : { clientOperationId: key })
