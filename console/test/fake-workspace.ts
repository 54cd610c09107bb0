import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { AppearanceSchema } from '#proto/session/v1/session_pb.js'
import {
  AvailabilitySchema,
  type Connection,
  ConnectionSchema,
  ConnectionStatus,
  type Installation,
  InstallationSchema,
  type PolicyChange,
  PolicyChangeSchema,
  WorkspaceSchema,
  WorkspaceService,
} from '#proto/workspace/v1/workspace_pb.js'

import { failure } from './fake-core.ts'
import { fakeSuppressions } from './fake-suppressions.ts'

/** A fake workspace with connections and installations in memory. */
export function fakeWorkspace() {
  const connections: Connection[] = []
  const installations: Installation[] = []
  const suppressions = fakeSuppressions()
  const defaultPeriod = (kind: string) => ({
    period: kind === 'emptySessions' ? { case: 'days', value: 1 } : { case: 'forever', value: true },
    isDefault: true,
  })
  const periods = ['conversations', 'leads', 'emptySessions', 'audit', 'heldDeliveries']
  const workspace = create(WorkspaceSchema, {
    workspaceId: 'ws_shop',
    name: 'Alpine Outfitters',
    retention: Object.fromEntries(periods.map((kind) => [kind, defaultPeriod(kind)])),
  })
  const changes: PolicyChange[] = []
  let secrets = 0
  const newSecret = () => {
    secrets += 1
    return { kid: `key_${secrets}`, secret: `identity-secret-${secrets}` }
  }
  const found = (siteKey: string) => {
    const installation = installations.find(({ publicSiteKey }) => publicSiteKey === siteKey)
    if (!installation) throw new ConnectError('NotFound', Code.NotFound)
    return installation
  }
  return {
    suppressions,
    addChange: (change: MessageInitShape<typeof PolicyChangeSchema>) =>
      void changes.unshift(
        create(PolicyChangeSchema, {
          changeId: `chg_${changes.length}`,
          confirmed: true,
          actor: 'ada@example.com',
          ...change,
        }),
      ),
    installation: found,
    addConnection: (connection: MessageInitShape<typeof ConnectionSchema>) =>
      connections.push(
        create(ConnectionSchema, { workspaceId: 'ws_shop', status: ConnectionStatus.ENABLED, ...connection }),
      ),
    addInstallation: (installation: MessageInitShape<typeof InstallationSchema>) =>
      installations.push(create(InstallationSchema, { workspaceId: 'ws_shop', enabled: true, ...installation })),
    routes(router: ConnectRouter) {
      router.service(WorkspaceService, {
        ...suppressions.methods,
        getWorkspace: () => ({
          workspace,
          lastBackups: { backup: timestampFromDate(new Date('2026-03-01T03:00:00')) },
        }),
        updateWorkspace({ name = workspace.name, retention = {} }) {
          if (name === '')
            throw failure({
              code: Code.InvalidArgument,
              info: 'ValidationFailed',
              issues: [{ path: '/name', rule: 'minLength' }],
            })
          workspace.name = name
          for (const [kind, period] of Object.entries(retention)) {
            if (typeof period !== 'object' || !('period' in period)) continue
            const isDefault = period.period.case === undefined
            Object.assign(workspace.retention!, { [kind]: isDefault ? defaultPeriod(kind) : period })
          }
          return { workspace }
        },
        deleteWorkspace: () => ({}),
        deleteConnection({ connectionId }) {
          connections.splice(0, connections.length, ...connections.filter((one) => one.connectionId !== connectionId))
          return {}
        },
        deleteInstallation({ siteKey }) {
          installations.splice(installations.indexOf(found(siteKey)), 1)
          return {}
        },
        listPolicyChanges: ({ target }) => ({
          changes: changes.filter((change) => target === '' || change.target === target),
        }),
        listConnections: () => ({ connections }),
        setConnectionStatus({ connectionId, status }) {
          const connection = connections.find((one) => one.connectionId === connectionId)!
          connection.status = status
          return { connection }
        },
        listInstallations: () => ({ installations }),
        createInstallation({ connectionId, name, origins, appearance }) {
          const identitySecret = newSecret()
          const installation = create(InstallationSchema, {
            publicSiteKey: `pk_${installations.length + 1}`,
            connectionId,
            workspaceId: 'ws_shop',
            name,
            origins,
            enabled: true,
            appearance: create(AppearanceSchema, {
              title: appearance?.title || 'Chat with us',
              greeting: 'Hello!',
              accentColor: '#1f6f5c',
              position: 'right',
            }),
            capabilities: { identity: true },
            identityKeyIds: [identitySecret.kid],
          })
          installations.push(installation)
          return { installation, identitySecret }
        },
        updateInstallation({
          siteKey,
          name,
          enabled,
          origins,
          appearance,
          capabilities,
          forms,
          availability,
          consent,
        }) {
          const installation = found(siteKey)
          if (name !== undefined) installation.name = name
          if (enabled !== undefined) installation.enabled = enabled
          if (origins.length > 0) installation.origins = origins
          // An empty text keeps the current value.
          const { translations = {}, ...look } = appearance ?? {}
          const texts = Object.entries(look).filter(([name, text]) => name !== '$typeName' && text !== '')
          for (const [tag, texts] of Object.entries(translations)) {
            if (texts.title || texts.greeting || texts.openingReplies?.texts.length)
              installation.appearance!.translations[tag] = texts
            else delete installation.appearance!.translations[tag]
          }
          Object.assign(installation.appearance!, Object.fromEntries(texts))
          if (capabilities) {
            const given = Object.entries(capabilities).filter(([, value]) => typeof value === 'boolean')
            Object.assign(installation.capabilities!, Object.fromEntries(given))
          }
          if (availability) {
            const given = Object.entries(availability).filter(([, value]) => value !== undefined)
            installation.availability = create(AvailabilitySchema, {
              ...installation.availability,
              ...Object.fromEntries(given),
            })
          }
          if (consent) installation.consent = consent
          if (forms) installation.forms = { ...installation.forms, ...forms }
          return { installation }
        },
        rotateIdentitySecret({ siteKey }) {
          const identitySecret = newSecret()
          const installation = found(siteKey)
          installation.identityKeyIds = [identitySecret.kid, ...installation.identityKeyIds].slice(0, 2)
          return { identitySecret }
        },
      })
    },
  }
}
