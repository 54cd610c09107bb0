import { type Connection, ConnectionStatus, type Installation } from '#proto/workspace/v1/workspace_pb.js'
import { usualFields } from '../../../browser/chat/usual-fields.ts'
import { useConsole } from '../console-context.ts'
import { areaName, pathOf } from '../router.ts'
import { DeleteButton, DialogButton, EnableButton, EnabledTag } from '../ui/dialog.tsx'
import { NameField, SelectField, TextField } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Empty, Page, RowText } from '../ui/page.tsx'
import { originProblem, toOrigin, websiteName } from './installation-words.ts'

export function InstallationsView() {
  const { api } = useConsole()
  const loaded = useLoad(
    () => Promise.all([api.workspaces.listConnections({}), api.workspaces.listInstallations({})]),
    [],
  )
  const known = loaded.value?.[0].connections
  const connections = known ?? []
  return (
    <Page
      title={areaName('installations')}
      lead="Websites that show the chat."
      actions={<NewWebsite connections={known} />}
    >
      <WhenLoaded loaded={loaded} what="websites">
        {([, { installations }]) =>
          installations.length === 0 && connections.length < 2 ? (
            <Empty icon="installations" title="No websites yet">
              <p>Add your website, and put one line of script on its pages.</p>
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
    </Page>
  )
}

interface ConnectionCardProps {
  connection: Connection
  installations: Installation[]
  onChanged: () => Promise<void>
}

function ConnectionCard({ connection, installations, onChanged }: ConnectionCardProps) {
  const { api } = useConsole()
  const { connectionId, name, status } = connection
  const isEnabled = status === ConnectionStatus.ENABLED
  function set(enabled: boolean) {
    const next = enabled ? ConnectionStatus.ENABLED : ConnectionStatus.DISABLED
    return api.workspaces.setConnectionStatus({ connectionId, status: next }).then(onChanged)
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
            done={[`${name} is enabled.`, `${name} is disabled.`]}
            set={set}
          />
          <DeleteButton
            what="connection"
            name={name}
            label={`Delete ${name}`}
            explanation="Its websites are deleted, its visitors’ chats end, and their conversations are removed. Leads stay."
            onDelete={() => api.workspaces.deleteConnection({ connectionId }).then(onChanged)}
            done={`${name} is deleted.`}
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
      {installations.map((each) => (
        <li key={each.publicSiteKey}>
          <a class="table-row" href={pathOf({ view: 'installation', siteKey: each.publicSiteKey })}>
            <EnabledTag enabled={each.enabled} />
            <RowText title={websiteName(each)}>{each.origins.join(', ')}</RowText>
          </a>
        </li>
      ))}
    </ul>
  )
}

/** Adds a website. Its connection is chosen only if there are several. */
function NewWebsite({ connections }: { connections: Connection[] | undefined }) {
  const { api, session, router } = useConsole()
  return (
    <DialogButton
      button="New website"
      kind="primary"
      icon="plus"
      isOff={!connections}
      title="New website"
      action="Create website"
      start={{ address: '', name: '', title: '', chosen: connections?.[0]?.connectionId }}
      isReady={({ address }) => address !== ''}
      problemsOf={({ address }) => ({ address: originProblem(toOrigin(address)) })}
      onConfirm={async ({ address, name, title, chosen }) => {
        const { workspaceId } = session
        const connectionId =
          chosen ?? (await api.workspaces.createConnection({ workspaceId, name: 'Website' })).connection!.connectionId
        const { installation } = await api.workspaces.createInstallation({
          connectionId,
          origins: [toOrigin(address)],
          name: name.trim(),
          appearance: title.trim() === '' ? undefined : { title: title.trim() },
          // While nobody is in the console, the chat asks for an address, and promises no answer at once.
          availability: { requiresOperator: true },
          capabilities: { offlineForm: true },
          forms: { offline: { fields: usualFields.offline } },
        })
        router.go(pathOf({ view: 'installation', siteKey: installation!.publicSiteKey }))
      }}
    >
      {({ field }) => (
        <>
          <TextField
            label="Address"
            hint="Where the chat may appear, for example shop.example."
            inputMode="url"
            {...field('address')}
          />
          <NameField {...field('name')} />
          <TextField
            label="Title"
            hint="Shown at the top of the chat."
            maxLength={128}
            placeholder="Chat with us"
            {...field('title')}
          />
          {connections && connections.length > 1 && (
            <SelectField
              label="Connection"
              options={connections.map((known) => [known.connectionId, known.name])}
              {...field('chosen')}
            />
          )}
        </>
      )}
    </DialogButton>
  )
}
