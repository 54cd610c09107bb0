import { useState } from 'preact/hooks'
import { type Connection, ConnectionStatus, type Installation } from '#proto/workspace/v1/workspace_pb.js'
import { areaName } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { DeleteButton, EnableButton, EnabledTag } from '../ui/dialog.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Button, Card, Empty, Icon, Page, RowText } from '../ui/page.tsx'
import { NewWebsite } from './new-website.tsx'

export function InstallationsView() {
  const { api, router } = useConsole()
  const [isAdding, setAdding] = useState(false)
  const loaded = useLoad(async () => {
    const [{ connections }, { installations }] = await Promise.all([
      api.workspaces.listConnections({}),
      api.workspaces.listInstallations({}),
    ])
    return { connections, installations }
  }, [])
  const connections = loaded.value?.connections ?? []
  const create = (
    <Button kind="primary" disabled={!loaded.value} onClick={() => setAdding(true)}>
      <Icon name="plus" />
      New website
    </Button>
  )
  return (
    <Page title={areaName('installations')} lead="Websites that show the chat." actions={create}>
      <WhenLoaded loaded={loaded} name="websites">
        {({ installations }) =>
          installations.length === 0 && connections.length < 2 ? (
            <Empty icon="installations" title="No websites yet">
              <p>Add your website, and put one line of script on its pages.</p>
              {create}
            </Empty>
          ) : connections.length < 2 ? (
            <Websites installations={installations} />
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
      {isAdding && (
        <NewWebsite
          connections={connections}
          onClose={() => setAdding(false)}
          onCreated={(siteKey) => router.go(pathOf({ view: 'installation', siteKey }))}
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
      <Websites installations={installations} />
    </Card>
  )
}

function Websites({ installations }: { installations: Installation[] }) {
  return (
    <ul class="table">
      {installations.map(({ publicSiteKey, appearance, origins, enabled }) => (
        <li key={publicSiteKey}>
          <a class="table-row" href={pathOf({ view: 'installation', siteKey: publicSiteKey })}>
            <EnabledTag enabled={enabled} />
            <RowText title={appearance?.title || publicSiteKey}>{origins.join(', ')}</RowText>
          </a>
        </li>
      ))}
    </ul>
  )
}
