import { useState } from 'preact/hooks'
import { type Connection, ConnectionStatus } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Confirm, useAction } from '../ui/dialog.tsx'
import { Icon } from '../ui/icon.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'
import { NewConnection } from './new-connection.tsx'
import { NewInstallation } from './new-installation.tsx'

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
      lead="Sites that show the widget. Each installation belongs to a connection, a channel that you can disable."
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
      {!loaded.value && loaded.loading && <Loading label="Loading installations" />}
      {loaded.value && connections.length === 0 && (
        <Empty icon="installations" title="No connections yet">
          <p>Create a connection, for example “Website”. Then add an installation for each site.</p>
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
            <p class="hint">No installations on this connection yet.</p>
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
      {adding === 'connection' && (
        <NewConnection onClose={() => setAdding(undefined)} onCreated={() => loaded.reload()} />
      )}
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
            Every visitor session on this connection ends within a second, and new ones are rejected. The widget shows
            that chat is unavailable. Conversations and leads are kept. You can enable it again.
          </p>
        </Confirm>
      )}
    </>
  )
}
