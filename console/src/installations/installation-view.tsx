import { useState } from 'preact/hooks'
import type { Installation } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Confirm, CopyButton, CopyOnce, useAction } from '../ui/dialog.tsx'
import { EntryList } from '../ui/entry-list.tsx'
import { Toggle } from '../ui/field.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'
import { AppearanceCard } from './appearance-card.tsx'
import { FormsCard } from './forms-card.tsx'
import { capabilities, originProblem, snippetOf } from './installation-words.ts'

export function InstallationView({ siteKey }: { siteKey: string }) {
  const { api } = useConsole()
  const loaded = useLoad(async () => {
    const { installations } = await api.workspaces.listInstallations({})
    return { installation: installations.find(({ publicSiteKey }) => publicSiteKey === siteKey) }
  }, [siteKey])
  const installation = loaded.value?.installation
  const parts = installation && {
    installation,
    onChanged: (changed: Installation) => loaded.set({ installation: changed }),
  }
  return (
    <Page
      title={installation?.appearance?.title || 'Installation'}
      back={{ path: pathOf({ view: 'installations' }), label: 'Installations' }}
      lead={<span class="mono">{siteKey}</span>}
    >
      <FailureNotice failure={loaded.failure} retry={() => void loaded.reload()} />
      {!loaded.value && loaded.loading && <Loading label="Loading installation" />}
      {loaded.value && !installation && (
        <Empty icon="search" title="Installation not found">
          <a class="button" href={pathOf({ view: 'installations' })}>
            All installations
          </a>
        </Empty>
      )}
      {parts && (
        <>
          <SnippetCard siteKey={siteKey} />
          <OriginsCard {...parts} />
          <AppearanceCard {...parts} />
          <CapabilitiesCard {...parts} />
          <FormsCard {...parts} />
          <SecretsCard {...parts} onRotated={() => void loaded.reload()} />
          <EnabledCard {...parts} />
        </>
      )}
    </Page>
  )
}

export interface InstallationPart {
  installation: Installation
  onChanged: (installation: Installation) => void
}

function SnippetCard({ siteKey }: { siteKey: string }) {
  const snippet = snippetOf(location.origin, siteKey)
  return (
    <Card title="Embed code" actions={<CopyButton text={snippet} label="Copy" />}>
      <pre class="snippet">
        <code>{snippet}</code>
      </pre>
      <p class="hint">Add this to every page, before the closing body tag. The site key is not secret.</p>
    </Card>
  )
}

function OriginsCard({ installation, onChanged }: InstallationPart) {
  const { api, announcer } = useConsole()
  const { failure, run } = useAction()
  const set = (origins: string[]) =>
    run(async () => {
      const answer = await api.workspaces.updateInstallation({ siteKey: installation.publicSiteKey, origins })
      if (answer.installation) onChanged(answer.installation)
      announcer.say('Origins saved.')
    })
  const last = installation.origins.length === 1
  return (
    <Card title="Origins">
      <EntryList
        label="Allowed origins"
        hint={
          last
            ? 'Only pages on this origin can show the widget. Add another origin before you remove it.'
            : 'Only pages on these origins can show the widget. Removing one takes effect immediately.'
        }
        placeholder="https://example.com"
        entries={installation.origins}
        problemOf={originProblem}
        onChange={(origins) => {
          if (origins.length > 0) void set(origins)
        }}
      />
      <FailureNotice failure={failure} />
    </Card>
  )
}

function CapabilitiesCard({ installation, onChanged }: InstallationPart) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  return (
    <Card title="Capabilities">
      <div class="toggles">
        {capabilities.map(({ name, label, hint }) => (
          <Toggle
            key={name}
            label={label}
            hint={hint}
            disabled={busy}
            checked={installation.capabilities?.[name] ?? false}
            onChange={(on) =>
              run(async () => {
                const { publicSiteKey: siteKey } = installation
                const answer = await api.workspaces.updateInstallation({ siteKey, capabilities: { [name]: on } })
                if (answer.installation) onChanged(answer.installation)
                announcer.say(`${label} is ${on ? 'on' : 'off'}.`)
              })
            }
          />
        ))}
      </div>
      <FailureNotice failure={failure} />
    </Card>
  )
}

function SecretsCard({ installation, onRotated }: InstallationPart & { onRotated: () => void }) {
  const { api } = useConsole()
  const [asking, setAsking] = useState(false)
  const [made, setMade] = useState<{ kid: string; secret: string }>()
  const { publicSiteKey: siteKey, identityKeyIds } = installation
  return (
    <Card
      title="Identity secrets"
      actions={
        <button type="button" class="button small" onClick={() => setAsking(true)}>
          Rotate
        </button>
      }
    >
      <p class="hint">Your backend signs visitor identities with one of these secrets. The newest is first.</p>
      <ul class="plain-list">
        {identityKeyIds.map((kid, index) => (
          <li key={kid}>
            <span class="mono">{kid}</span>
            <span class="hint">{index === 0 ? 'current' : 'valid until the next rotation'}</span>
          </li>
        ))}
      </ul>
      {asking && (
        <Confirm
          title="Rotate the identity secret?"
          action="Create new secret"
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            const { identitySecret } = await api.workspaces.rotateIdentitySecret({ siteKey })
            if (identitySecret) setMade(identitySecret)
          }}
        >
          <p>
            A new secret is created and shown once. The current one stays valid until the next rotation, so that your
            backend can switch.
            {identityKeyIds.length > 1 && ' The older of the two becomes invalid now.'}
          </p>
        </Confirm>
      )}
      {made && (
        <CopyOnce
          title="New identity secret"
          label={`Secret (key ${made.kid})`}
          secret={made.secret}
          onClose={() => {
            setMade(undefined)
            onRotated()
          }}
        >
          <p>Keep it on your server, never on a page. It is shown only once.</p>
        </CopyOnce>
      )}
    </Card>
  )
}

function EnabledCard({ installation, onChanged }: InstallationPart) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const [asking, setAsking] = useState(false)
  const { publicSiteKey: siteKey, enabled } = installation
  async function set(on: boolean) {
    const answer = await api.workspaces.updateInstallation({ siteKey, enabled: on })
    if (answer.installation) onChanged(answer.installation)
    announcer.say(on ? 'Installation enabled.' : 'Installation disabled.')
  }
  return (
    <Card
      title="Status"
      actions={
        <button
          type="button"
          class={enabled ? 'button small danger-quiet' : 'button primary small'}
          disabled={busy}
          onClick={() => (enabled ? setAsking(true) : run(() => set(true)))}
        >
          {enabled ? 'Disable' : 'Enable'}
        </button>
      }
    >
      <p>
        {enabled ? <span class="tag ok">Enabled</span> : <span class="tag bad">Disabled</span>}{' '}
        {enabled ? 'The widget works on the allowed origins.' : 'The widget does not load on any page.'}
      </p>
      <FailureNotice failure={failure} />
      {asking && (
        <Confirm
          title="Disable this installation?"
          action="Disable installation"
          danger
          onClose={() => setAsking(false)}
          onConfirm={() => set(false)}
        >
          <p>New visitor sessions with this site key are rejected. Conversations are kept. You can enable it again.</p>
        </Confirm>
      )}
    </Card>
  )
}
