import { ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { pngOf } from '../../test/support/images.ts'
import type { TestCores } from './cores.ts'
import { deliveryWrites } from './delivery-writes.ts'
import {
  bareScene,
  clientOperationOf,
  collectionsOf,
  commandScene,
  idempotencyOf,
  sessionScene,
  siteScene,
  type Write,
  workspaceScene,
} from './operator-scenes.ts'
import { site } from './visitor-credentials.ts'

const workspaceOf = async (cores: TestCores, workspaceId: string) =>
  (await collectionsOf(cores).workspaces.findOne({ _id: workspaceId }))!
const installationOf = async (cores: TestCores, siteKey: string) =>
  (await collectionsOf(cores).installations.findOne({ _id: siteKey }))!

const logo = pngOf()

/** The writes of operators that have an idempotency key, and how to count their effects. */
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
  'WorkspaceService.SetLogo': {
    isKeyed: true,
    scene: siteScene,
    async call({ workspaces }, { siteKey }, key, input) {
      const image = input === 'a' ? logo : new Uint8Array()
      await workspaces.setLogo({ siteKey, image, gatewayOrigin: site, ...idempotencyOf(key) })
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
  ...deliveryWrites,
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
