import { useState } from 'preact/hooks'
import { type Connection, ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Confirm, CopyOnce, Dialog, useAction } from '../ui/dialog.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { Field } from '../ui/field.tsx'
import { Icon } from '../ui/icon.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'
import { originProblem } from './installation-words.ts'

export function InstallationsView() {
  const { api } = useConsole()
  const [adding, setAdding] = useState<'connection' | 'installation'>()
  const loaded = useLoad(async () => {
    const [{ connections }, { installations }] = await Promise.all([
      api.workspaces.listConnections({}),
      api.workspaces.listInstallations({}),
    ])
    return { connections, installations }
  }, [])
  const { connections = [], installations = [] } = loaded.value ?? {}
  return (
    <Page
      title="Installations"
      lead="Where the widget stands. A connection is a channel that can be switched off, with the installations on it."
      actions={
        <>
          <button type="button" class="button" onClick={() => setAdding('connection')}>
            New connection
          </button>
          {connections.length > 0 && (
            <button type="button" class="button primary" onClick={() => setAdding('installation')}>
              <Icon name="plus" />
              New installation
            </button>
          )}
        </>
      }
    >
      <FailureNotice failure={loaded.failure} retry={() => void loaded.reload()} />
      {!loaded.value && loaded.loading && <Loading label="The installations are being loaded" />}
      {loaded.value && connections.length === 0 && (
        <Empty icon="installations" title="No connection yet">
          <p>Begin with a connection, for example “Website”. Then put an installation on it for each site.</p>
          <button type="button" class="button primary" onClick={() => setAdding('connection')}>
            New connection
          </button>
        </Empty>
      )}
      {connections.map((connection) => (
        <Card
          key={connection.connectionId}
          title={connection.name}
          actions={<ConnectionSwitch connection={connection} onChanged={loaded.reload} />}
        >
          {installations.every(({ connectionId }) => connectionId !== connection.connectionId) && (
            <p class="hint">No installation is on this connection yet.</p>
          )}
          <ul class="table">
            {installations
              .filter(({ connectionId }) => connectionId === connection.connectionId)
              .map(({ publicSiteKey, appearance, origins, enabled }) => (
                <li key={publicSiteKey}>
                  <a class="table-row" href={pathOf({ view: 'installation', siteKey: publicSiteKey })}>
                    {enabled ? <span class="tag ok">Enabled</span> : <span class="tag bad">Disabled</span>}
                    <span class="table-main">
                      <span class="table-title">{appearance?.title || publicSiteKey}</span>
                      <span class="table-sub">{origins.join(', ')}</span>
                    </span>
                    <span class="mono hint">{publicSiteKey}</span>
                  </a>
                </li>
              ))}
          </ul>
        </Card>
      ))}
      {adding === 'connection' && <NewConnection onClose={() => setAdding(undefined)} onMade={() => loaded.reload()} />}
      {adding === 'installation' && <NewInstallation connections={connections} onClose={() => setAdding(undefined)} />}
    </Page>
  )
}

function ConnectionSwitch({ connection, onChanged }: { connection: Connection; onChanged: () => Promise<void> }) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const [asking, setAsking] = useState(false)
  const { connectionId, name, status } = connection
  const enabled = status === ConnectionStatus.ENABLED
  async function set(to: ConnectionStatus) {
    await api.workspaces.setConnectionStatus({ connectionId, status: to })
    announcer.say(to === ConnectionStatus.ENABLED ? `${name} is enabled.` : `${name} is disabled.`)
    await onChanged()
  }
  return (
    <>
      <span class={enabled ? 'tag ok' : 'tag bad'}>{enabled ? 'Enabled' : 'Disabled'}</span>
      <button
        type="button"
        class="button small"
        disabled={busy}
        aria-label={`${enabled ? 'Disable' : 'Enable'} ${name}`}
        onClick={() => (enabled ? setAsking(true) : run(() => set(ConnectionStatus.ENABLED)))}
      >
        {enabled ? 'Disable' : 'Enable'}
      </button>
      <FailureNotice failure={failure} />
      {asking && (
        <Confirm
          title={`Disable ${name}?`}
          action="Disable connection"
          danger
          onClose={() => setAsking(false)}
          onConfirm={() => set(ConnectionStatus.DISABLED)}
        >
          <p>
            Every visitor session on it ends within a second, and no new one begins: the widget says that the chat is
            not available. Conversations and leads stay. You can enable it again.
          </p>
        </Confirm>
      )}
    </>
  )
}

function NewConnection({ onClose, onMade }: { onClose: () => void; onMade: () => Promise<void> }) {
  const { api, session } = useConsole()
  const { busy, failure, run } = useAction()
  const [name, setName] = useState('')
  async function create(event: Event) {
    event.preventDefault()
    const { workspaceId } = session
    if (await run(() => api.workspaces.createConnection({ workspaceId, name: name.trim() }))) {
      await onMade()
      onClose()
    }
  }
  return (
    <Dialog title="New connection" onClose={onClose}>
      <form class="dialog-body" onSubmit={create} noValidate>
        <Field label="Name" hint="For you and your colleagues, for example “Website”.">
          {(attributes) => (
            <input
              {...attributes}
              class="input"
              maxLength={128}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        <FailureNotice failure={failure} />
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy || name.trim() === ''}>
            Create connection
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function NewInstallation({ connections, onClose }: { connections: Connection[]; onClose: () => void }) {
  const { api, router } = useConsole()
  const { busy, failure, run } = useAction()
  const [connectionId, setConnection] = useState(connections[0]!.connectionId)
  const [title, setTitle] = useState('')
  const [origins, setOrigins] = useState<string[]>([])
  const [made, setMade] = useState<{ siteKey: string; secret: string; kid: string }>()

  function create(event: Event) {
    event.preventDefault()
    void run(async () => {
      const appearance = title.trim() === '' ? undefined : { title: title.trim() }
      const { installation, identitySecret } = await api.workspaces.createInstallation({
        connectionId,
        origins,
        appearance,
      })
      if (installation && identitySecret)
        setMade({ siteKey: installation.publicSiteKey, secret: identitySecret.secret, kid: identitySecret.kid })
    })
  }

  if (made) {
    return (
      <CopyOnce
        title="The identity secret"
        label={`Secret (key ${made.kid})`}
        secret={made.secret}
        onClose={() => router.go(pathOf({ view: 'installation', siteKey: made.siteKey }))}
      >
        <p>
          With it your backend vouches for who a visitor is. Keep it on your server, never on a page. It is shown this
          once; if you do not need it now, you can rotate it later.
        </p>
      </CopyOnce>
    )
  }
  return (
    <Dialog title="New installation" onClose={onClose}>
      <form class="dialog-body" onSubmit={create} noValidate>
        <Field label="Connection">
          {(attributes) => (
            <select
              {...attributes}
              class="input"
              value={connectionId}
              onChange={(event) => setConnection(event.currentTarget.value)}
            >
              {connections.map((known) => (
                <option key={known.connectionId} value={known.connectionId}>
                  {known.name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Title" hint="Stands at the top of the chat. It can be changed later.">
          {(attributes) => (
            <input
              {...attributes}
              class="input"
              maxLength={128}
              placeholder="Chat with us"
              value={title}
              onInput={(event) => setTitle(event.currentTarget.value)}
            />
          )}
        </Field>
        <EntryList
          label="Allowed origins"
          hint="Only pages of these may show the widget. At least one."
          placeholder="https://example.com"
          entries={origins}
          problemOf={originProblem}
          onChange={setOrigins}
        />
        <FailureNotice failure={failure} />
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy || origins.length === 0}>
            Create installation
          </button>
        </div>
      </form>
    </Dialog>
  )
}
