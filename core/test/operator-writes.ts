import { createClient, type Transport } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { ConnectionStatus, WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import type { CoreContext } from '../context.ts'
import { inMemoryTransport } from '../server.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import type { TestCores } from './cores.ts'
import { site } from './visitor-credentials.ts'

/** Creates clients that call the core as an operator of the workspace. */
export async function clientsOf(core: CoreContext, workspaceId: string | undefined) {
  const scopes = [...operatorScopes]
  const token = await core.access.issue({ subject: 'ada', scopes, workspaceId })
  const inMemory = inMemoryTransport(core)
  const transport: Transport = {
    ...inMemory,
    unary: (method, signal, timeoutMs, _header, input) =>
      inMemory.unary(method, signal, timeoutMs, { authorization: `Bearer ${token}` }, input),
  }
  return {
    workspaces: createClient(WorkspaceService, transport),
    leads: createClient(LeadService, transport),
    commands: createClient(CommandService, transport),
    messaging: createClient(MessagingService, transport),
    sessions: createClient(SessionService, transport),
  }
}

type Clients = Awaited<ReturnType<typeof clientsOf>>

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
const destinationUrl = 'https://93.184.216.34/hook'
const fieldNamed = (name: string) => name.replace(' ', '-')
const desk = { subject: 'desk' }
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

const bareScene = async (): Promise<Scene> => ({ ...nothing, name: `Scene ${++scenes}` })

async function workspaceScene({ core }: TestCores): Promise<Scene> {
  const scene = await bareScene()
  const { workspaceId } = await core.workspaces.createWorkspace(scene.name)
  return { ...scene, workspaceId }
}

async function siteScene(cores: TestCores): Promise<Scene> {
  const { core, workspaceId } = cores
  const scene = await bareScene()
  const { connectionId } = await core.workspaces.createConnection(workspaceId, scene.name, undefined)
  const { installation } = await core.workspaces.createInstallation(connectionId, { origins: [site] }, undefined)
  return { ...scene, connectionId, siteKey: installation.publicSiteKey }
}

async function leadScene(cores: TestCores): Promise<Scene> {
  const { core, workspaceId } = cores
  const leadId = await core.leads.capture({ workspaceId, source: 'test', fields: {} }, undefined)
  const settings = { workspaceId, destinationUrl, mappedFields: [], automatic: false }
  const { subscription } = await core.leadSubscriptions.create(settings, desk)
  return { ...(await bareScene()), leadId, subscriptionId: subscription.subscriptionId }
}

async function failedScene(cores: TestCores): Promise<Scene> {
  const { core } = cores
  const scene = await leadScene(cores)
  const { leadId, subscriptionId, name } = scene
  const idempotencyKey = name.replace(' ', '-')
  const { attempt } = await core.deliveries.createAttempt({ leadId, subscriptionId, idempotencyKey }, desk)
  const { attemptId, deliveryId } = attempt
  const claimed = await core.waitingClaims.claim({
    workerId: 'worker',
    limit: 1000,
    perDestination: 100,
    underWay: new Map(),
    waitMs: 0,
    onlyNew: false,
    signal: new AbortController().signal,
  })
  const result = { durationMs: 1, facts: { status: 400 } }
  await core.deliveryResults.record(
    claimed.map(({ deliveryId, attemptId, claimId }) => ({ deliveryId, attemptId, claimId, ...result })),
  )
  return { ...scene, attemptId, deliveryId }
}

async function sessionScene(cores: TestCores): Promise<Scene> {
  const { sessionId } = await cores.newSession()
  return { ...(await bareScene()), sessionId }
}

async function commandScene(cores: TestCores): Promise<Scene> {
  const scene = await sessionScene(cores)
  const request = { sessionId: scene.sessionId, url: `${site}/a` }
  const { content } = await cores.core.commands.requestNavigation(request, desk)
  return { ...scene, commandId: content.commandId }
}

const collectionsOf = ({ core }: TestCores) => core.database.collections
const workspaceOf = async (cores: TestCores, workspaceId: string) =>
  (await collectionsOf(cores).workspaces.findOne({ _id: workspaceId }))!
const installationOf = async (cores: TestCores, siteKey: string) =>
  (await collectionsOf(cores).installations.findOne({ _id: siteKey }))!
const idempotencyOf = (key: string | undefined) => (key === undefined ? {} : { idempotencyKey: key })
const clientOperationOf = (key: string | undefined) => (key === undefined ? {} : { clientOperationId: key })

export const writes: Record<string, Write> = {
  'WorkspaceService.CreateWorkspace': {
    isKeyed: true,
    isGlobal: true,
    scene: bareScene,
    async call({ workspaces }, { name }, key, input) {
      const made = await workspaces.createWorkspace({ name: input === 'a' ? name : input, ...idempotencyOf(key) })
      return { id: made.workspace?.workspaceId }
    },
    effects: (cores, { name }) => collectionsOf(cores).workspaces.countDocuments({ name }),
  },
  'WorkspaceService.UpdateWorkspace': {
    isKeyed: true,
    isGlobal: true,
    scene: workspaceScene,
    async call({ workspaces }, { workspaceId }, key, name) {
      await workspaces.updateWorkspace({ workspaceId, name, ...idempotencyOf(key) })
      return { id: workspaceId }
    },
    effects: async (cores, { workspaceId }) => (await workspaceOf(cores, workspaceId)).operations?.length ?? 0,
    state: async (cores, { workspaceId }) => (await workspaceOf(cores, workspaceId)).name,
  },
  'WorkspaceService.CreateConnection': {
    isKeyed: true,
    scene: bareScene,
    async call({ workspaces }, { name }, key, input) {
      const { workspaceId = '' } = (await workspaces.getWorkspace({})).workspace ?? {}
      const made = await workspaces.createConnection({
        workspaceId,
        name: input === 'a' ? name : input,
        ...idempotencyOf(key),
      })
      return { id: made.connection?.connectionId }
    },
    effects: (cores, { name }) => collectionsOf(cores).connections.countDocuments({ name }),
  },
  'WorkspaceService.SetConnectionStatus': {
    isKeyed: true,
    scene: siteScene,
    async call({ workspaces }, { connectionId }, key, input) {
      const status = input === 'a' ? ConnectionStatus.DISABLED : ConnectionStatus.ENABLED
      await workspaces.setConnectionStatus({ connectionId, status, ...idempotencyOf(key) })
      return { id: connectionId }
    },
    effects: async (cores, { connectionId }) =>
      (await collectionsOf(cores).connections.findOne({ _id: connectionId }))!.statusVersion,
    state: async (cores, { connectionId }) =>
      (await collectionsOf(cores).connections.findOne({ _id: connectionId }))!.status,
  },
  'WorkspaceService.CreateInstallation': {
    isKeyed: true,
    scene: siteScene,
    async call({ workspaces }, { connectionId }, key, input) {
      const origins = [`https://${input}.example`]
      const made = await workspaces.createInstallation({ connectionId, origins, ...idempotencyOf(key) })
      return { id: made.installation?.publicSiteKey, secret: made.identitySecret?.secret }
    },
    effects: (cores, { connectionId }) => collectionsOf(cores).installations.countDocuments({ connectionId }),
  },
  'WorkspaceService.UpdateInstallation': {
    isKeyed: true,
    scene: siteScene,
    async call({ workspaces }, { siteKey }, key, title) {
      await workspaces.updateInstallation({ siteKey, appearance: { title }, ...idempotencyOf(key) })
      return { id: siteKey }
    },
    effects: async (cores, { siteKey }) => (await installationOf(cores, siteKey)).operations?.length ?? 0,
    state: async (cores, { siteKey }) => (await installationOf(cores, siteKey)).appearance,
  },
  'WorkspaceService.RotateIdentitySecret': {
    isKeyed: true,
    scene: siteScene,
    async call({ workspaces }, { siteKey }, key, input) {
      const overlap = input === 'a' ? {} : { overlapSeconds: 60 }
      const { identitySecret } = await workspaces.rotateIdentitySecret({ siteKey, ...overlap, ...idempotencyOf(key) })
      return { id: identitySecret?.kid, secret: identitySecret?.secret }
    },
    effects: async (cores, { siteKey }) => (await installationOf(cores, siteKey)).identitySecrets.length,
  },
  'LeadService.CaptureLead': {
    isKeyed: true,
    scene: bareScene,
    async call({ leads }, { name }, key, input) {
      const { leadId } = await leads.captureLead({ source: name, fields: { input }, ...idempotencyOf(key) })
      return { id: leadId }
    },
    effects: (cores, { name }) => collectionsOf(cores).leads.countDocuments({ source: name }),
  },
  'LeadService.CreateSubscription': {
    isKeyed: true,
    scene: bareScene,
    async call({ leads }, { name }, key, input) {
      const mappedFields = [input, fieldNamed(name)]
      const made = await leads.createSubscription({ destinationUrl, mappedFields, ...idempotencyOf(key) })
      return { id: made.subscriptionId, secret: made.secret }
    },
    effects: (cores, { name }) =>
      collectionsOf(cores).leadSubscriptions.countDocuments({ mappedFields: fieldNamed(name) }),
  },
  'LeadService.UpdateSubscription': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key, input) {
      await leads.updateSubscription({ subscriptionId, mappedFields: { names: [input] }, ...idempotencyOf(key) })
      return { id: subscriptionId }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.audit.length,
    state: async (cores, { subscriptionId }) => {
      const found = await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId })
      return [found!.mappedFields, found!.status]
    },
  },
  'LeadService.RotateSubscriptionSecret': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key, input) {
      const overlapSeconds = input === 'a' ? 3600 : 60
      const made = await leads.rotateSubscriptionSecret({ subscriptionId, overlapSeconds, ...idempotencyOf(key) })
      return { id: made.subscription?.secrets[0]?.secretId, secret: made.secret }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.secrets.length,
  },
  'LeadService.ActivateSubscriptionSecret': {
    isKeyed: true,
    async scene(cores) {
      const scene = await leadScene(cores)
      await cores.core.leadSubscriptions.rotateSecret(scene.subscriptionId, undefined, desk)
      return scene
    },
    async call({ leads }, { subscriptionId }, key, input) {
      const { secrets } = (await leads.getSubscription({ subscriptionId })).subscription!
      const { secretId } = secrets[input === 'a' ? 0 : 1]!
      await leads.activateSubscriptionSecret({ subscriptionId, secretId, ...idempotencyOf(key) })
      return { id: secretId }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.audit.length,
  },
  'LeadService.CreateDeliveryAttempt': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { leadId, subscriptionId }, key = '', input) {
      const other = input === 'a' ? {} : { leadId: (await leads.captureLead({ source: 'other' })).leadId }
      const made = await leads.createDeliveryAttempt({ leadId, ...other, subscriptionId, idempotencyKey: key })
      return { id: made.attempt?.attemptId }
    },
    effects: (cores, { subscriptionId }) => collectionsOf(cores).deliveries.countDocuments({ subscriptionId }),
  },
  'LeadService.SendTestDelivery': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key = '', input) {
      const other = input === 'a' ? undefined : (await leads.createSubscription({ destinationUrl })).subscriptionId
      const made = await leads.sendTestDelivery({ subscriptionId: other ?? subscriptionId, idempotencyKey: key })
      return { id: made.attempt?.attemptId }
    },
    effects: (cores, { subscriptionId }) => collectionsOf(cores).deliveries.countDocuments({ subscriptionId }),
  },
  'LeadService.RecoverDeliveries': {
    isKeyed: true,
    scene: leadScene,
    async call({ leads }, { subscriptionId }, key, input) {
      const since = { seconds: input === 'a' ? 1n : 2n }
      const { recovery } = await leads.recoverDeliveries({ subscriptionId, since, ...idempotencyOf(key) })
      return { id: recovery?.recoveryId }
    },
    effects: async (cores, { subscriptionId }) =>
      (await collectionsOf(cores).leadSubscriptions.findOne({ _id: subscriptionId }))!.audit.length,
  },
  'LeadService.RetryDeliveryAttempt': {
    isKeyed: true,
    scene: failedScene,
    async call({ leads }, { attemptId }, key = '', input) {
      const other = input === 'a' ? undefined : (await leads.listDeliveries({ limit: 2 })).deliveries.at(-1)
      const made = await leads.retryDeliveryAttempt({
        attemptId: other?.latestAttempt?.attemptId ?? attemptId,
        idempotencyKey: key,
      })
      return { id: made.attempt?.attemptId }
    },
    effects: async (cores, { deliveryId }) =>
      (await collectionsOf(cores).deliveries.findOne({ _id: deliveryId }))!.attempts.length,
  },
  'CommandService.RequestNavigation': {
    isKeyed: true,
    scene: sessionScene,
    async call({ commands }, { sessionId }, key, input) {
      const url = `${site}/${input}`
      const { command } = await commands.requestNavigation({ sessionId, url, ...clientOperationOf(key) })
      return { id: command?.commandId }
    },
    effects: (cores, { sessionId }) => collectionsOf(cores).commands.countDocuments({ sessionId }),
  },
  'CommandService.RequestScreenshot': {
    isKeyed: true,
    scene: sessionScene,
    async call({ commands }, { sessionId }, key, purpose) {
      const { command } = await commands.requestScreenshot({ sessionId, purpose, ...clientOperationOf(key) })
      return { id: command?.commandId }
    },
    effects: (cores, { sessionId }) => collectionsOf(cores).commands.countDocuments({ sessionId }),
  },
  'CommandService.CancelCommand': {
    isKeyed: false,
    scene: commandScene,
    async call({ commands }, { commandId }) {
      return { id: (await commands.cancelCommand({ commandId })).command?.transitions.map(({ state }) => state).join() }
    },
    effects: async (cores, { commandId }) =>
      (await collectionsOf(cores).commands.findOne({ _id: commandId }))!.transitions.length,
  },
}
