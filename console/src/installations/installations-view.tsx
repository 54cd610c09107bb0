import { useState } from 'preact/hooks'
import { type Connection, ConnectionStatus, type Installation } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { areaName, pathOf } from '../router.ts'
import { ActionDialog, DeleteButton, EnableButton, EnabledTag } from '../ui/dialog.tsx'
import { EntryList, SelectField, TextField } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Button, Card, Empty, Icon, Page, RowText } from '../ui/page.tsx'
import { usualFields } from './forms-card.tsx'
import { originProblem, toOrigin } from './installation-words.ts'

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

interface NewWebsiteProps {
  connections: Connection[]
  onClose: () => void
  onCreated: (siteKey: string) => void
}

/** Adds a website. Its connection is chosen only if there are several. */
export function NewWebsite({ connections, onClose, onCreated }: NewWebsiteProps) {
  const { api, session } = useConsole()
  const [chosen, setChosen] = useState(connections[0]?.connectionId)
  const [title, setTitle] = useState('')
  const [origins, setOrigins] = useState<string[]>([])

  async function create() {
    const { workspaceId } = session
    const connectionId =
      chosen ?? (await api.workspaces.createConnection({ workspaceId, name: 'Website' })).connection!.connectionId
    const { installation } = await api.workspaces.createInstallation({
      connectionId,
      origins,
      appearance: title.trim() === '' ? undefined : { title: title.trim() },
      // A chat that nobody watches must not promise an answer. It asks for an address instead.
      availability: { requiresOperator: true },
      capabilities: { offlineForm: true },
      forms: { offline: { fields: usualFields.offline } },
    })
    onCreated(installation!.publicSiteKey)
  }

  return (
    <ActionDialog
      title="New website"
      action="Create website"
      disabled={origins.length === 0}
      onClose={onClose}
      onConfirm={create}
    >
      <EntryList
        label="Addresses"
        hint="Where the chat may appear, for example shop.example."
        placeholder="shop.example"
        entries={origins}
        read={toOrigin}
        problemOf={originProblem}
        onChange={setOrigins}
      />
      <TextField
        label="Title"
        hint="Shown at the top of the chat."
        maxLength={128}
        placeholder="Chat with us"
        value={title}
        onChange={setTitle}
      />
      {connections.length > 1 && (
        <SelectField
          label="Connection"
          value={chosen!}
          options={connections.map((known) => [known.connectionId, known.name])}
          onChange={setChosen}
        />
      )}
    </ActionDialog>
  )
}
