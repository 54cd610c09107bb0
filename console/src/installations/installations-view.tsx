import { useState } from 'preact/hooks'
import { type Connection, ConnectionStatus, type Installation } from '#proto/workspace/v1/workspace_pb.js'
import { areaName } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Button } from '../ui/button.tsx'
import { DeleteButton } from '../ui/delete-button.tsx'
import { EnableButton, EnabledTag } from '../ui/enabled.tsx'
import { Icon } from '../ui/icon.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, WhenLoaded } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'
import { CopyOnce } from '../ui/secrets.tsx'
import { type CreatedInstallation, NewConnection, NewInstallation } from './create-dialogs.tsx'

export function InstallationsView() {
  const { api, router } = useConsole()
  const [adding, setAdding] = useState<'connection' | 'installation'>()
  const [created, setCreated] = useState<CreatedInstallation>()
  const loaded = useLoad(async () => {
    const [{ connections }, { installations }] = await Promise.all([
      api.workspaces.listConnections({}),
      api.workspaces.listInstallations({}),
    ])
    return { connections, installations }
  }, [])
  const connections = loaded.value?.connections ?? []
  return (
    <Page
      title={areaName('installations')}
      lead="Websites that show the chat. Each belongs to a connection, a channel that you can disable."
      actions={
        <>
          <Button onClick={() => setAdding('connection')}>New connection</Button>
          {connections.length > 0 && (
            <Button kind="primary" onClick={() => setAdding('installation')}>
              <Icon name="plus" />
              New website
            </Button>
          )}
        </>
      }
    >
      <WhenLoaded loaded={loaded} name="websites">
        {({ installations }) =>
          connections.length === 0 ? (
            <Empty icon="installations" title="No connections yet">
              <p>Create a connection, for example “Website”. Then add each website.</p>
              <Button kind="primary" onClick={() => setAdding('connection')}>
                New connection
              </Button>
            </Empty>
          ) : (
            connections.map((connection) => (
              <ConnectionCard
                key={connection.connectionId}
                connection={connection}
                installations={installations.filter(({ connectionId }) => connectionId === connection.connectionId)}
                onChanged={loaded.reload}
              />
            ))
          )
        }
      </WhenLoaded>
      {adding === 'connection' && <NewConnection onClose={() => setAdding(undefined)} onCreated={loaded.reload} />}
      {adding === 'installation' && (
        <NewInstallation connections={connections} onClose={() => setAdding(undefined)} onCreated={setCreated} />
      )}
      {created && (
        <CopyOnce
          title="Identity secret"
          label={`Secret (key ${created.kid})`}
          secret={created.secret}
          advice="Your backend signs visitor identities with this secret. Keep it on your server, never on a page. It is shown only once; you can rotate it later."
          onClose={() => router.go(pathOf({ view: 'installation', siteKey: created.siteKey }))}
        />
      )}
    </Page>
  )
}

interface ConnectionCardProps {
  connection: Connection
  installations: Installation[]
  onChanged: () => Promise<void>
}

function ConnectionCard({ connection, installations, onChanged }: ConnectionCardProps) {
  const { api, announcer } = useConsole()
  const { connectionId, name, status } = connection
  const isEnabled = status === ConnectionStatus.ENABLED
  async function set(enabled: boolean) {
    const next = enabled ? ConnectionStatus.ENABLED : ConnectionStatus.DISABLED
    await api.workspaces.setConnectionStatus({ connectionId, status: next })
    announcer.say(`${name} is ${enabled ? 'enabled' : 'disabled'}.`)
    await onChanged()
  }
  return (
    <Card
      title={name}
      actions={
        <>
          <EnabledTag enabled={isEnabled} />
          <EnableButton
            enabled={isEnabled}
            what={name}
            label={name}
            action="Disable connection"
            explanation="Every visitor session on this connection ends within a second, and new ones are rejected. The widget shows that chat is unavailable. Conversations and leads are kept. You can enable it again."
            set={set}
          />
          <DeleteButton
            kind="connection"
            name={name}
            label={`Delete ${name}`}
            explanation="Its websites are deleted, its visitors’ chats end, and their conversations are removed. Leads stay."
            onDelete={async () => {
              await api.workspaces.deleteConnection({ connectionId })
              announcer.say(`${name} is deleted.`)
              await onChanged()
            }}
          />
        </>
      }
    >
      {installations.length === 0 && <p class="hint">No websites on this connection yet.</p>}
      <ul class="table">
        {installations.map(({ publicSiteKey, appearance, origins, enabled }) => (
          <li key={publicSiteKey}>
            <a class="table-row" href={pathOf({ view: 'installation', siteKey: publicSiteKey })}>
              <EnabledTag enabled={enabled} />
              <span class="table-main">
                <span class="table-title">{appearance?.title || publicSiteKey}</span>
                <span class="table-sub ellipsis">{origins.join(', ')}</span>
              </span>
            </a>
          </li>
        ))}
      </ul>
    </Card>
  )
}
