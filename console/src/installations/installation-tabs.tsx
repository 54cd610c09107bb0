import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { CopyButton, DeleteCard, EnableButton, EnabledTag, SecretsCard } from '../ui/dialog.tsx'
import { EntryList, Toggle } from '../ui/form.tsx'
import { Card, FailureNotice } from '../ui/page.tsx'
import { AppearanceCard } from './appearance-card.tsx'
import { AvailabilityCard } from './availability-card.tsx'
import { ConsentCard } from './consent-card.tsx'
import { FormsCard } from './forms-card.tsx'
import { capabilities, capabilityNames, originProblem, snippetOf, toOrigin } from './installation-words.ts'
import { LogoCard } from './logo-card.tsx'
import { TranslationsCard } from './translations-card.tsx'
import { UnseenCard } from './unseen-card.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

/** Shows the settings of a tab. */
export function TabContent({
  tab,
  onRotated,
  ...part
}: InstallationPart & { tab: string; onRotated: () => Promise<void> }) {
  const { publicSiteKey, identityKeyIds } = part.installation
  switch (tab) {
    case 'look':
      return (
        <>
          <AppearanceCard {...part} />
          <LogoCard {...part} />
          <TranslationsCard {...part} />
        </>
      )
    case 'hours':
      return <AvailabilityCard {...part} />
    case 'forms':
      return (
        <>
          <CapabilitiesCard title="Forms" names={formCapabilities} {...part} />
          <FormsCard {...part} />
        </>
      )
    case 'privacy':
      return (
        <>
          <ConsentCard {...part} />
          <UnseenCard {...part} />
        </>
      )
    case 'keys':
      return <IdentitySecrets siteKey={publicSiteKey} keyIds={identityKeyIds} onRotated={onRotated} />
    default:
      return (
        <>
          <SnippetCard siteKey={publicSiteKey} />
          <OriginsCard {...part} />
          <CapabilitiesCard
            title="Features"
            names={capabilityNames.filter((name) => !formCapabilities.includes(name))}
            {...part}
          />
          <StatusCard {...part} />
          <DeleteInstallation {...part} />
        </>
      )
  }
}

function SnippetCard({ siteKey }: { siteKey: string }) {
  const snippet = snippetOf(location.origin, siteKey)
  return (
    <Card title="Embed code" actions={<CopyButton text={snippet} />}>
      <pre class="snippet">
        <code>{snippet}</code>
      </pre>
      <p class="hint">Add this to every page, before the closing body tag. The site key is not secret.</p>
    </Card>
  )
}

function OriginsCard(part: InstallationPart) {
  const { origins } = part.installation
  const { failure, save } = useUpdate(part)
  return (
    <Card title="Addresses">
      <EntryList
        label="Addresses"
        hint="Only pages there can show the chat. Changes take effect at once. The last one stays."
        placeholder="shop.example"
        entries={origins}
        read={toOrigin}
        problemOf={originProblem}
        onChange={(changed) => {
          if (changed.length > 0) return save({ origins: changed }, 'Addresses saved.')
        }}
      />
      <FailureNotice failure={failure} />
    </Card>
  )
}

type CapabilityName = (typeof capabilityNames)[number]

const formCapabilities: CapabilityName[] = ['preChatForm', 'offlineForm']

function CapabilitiesCard({ title, names, ...part }: InstallationPart & { title: string; names: CapabilityName[] }) {
  const { busy, failure, save } = useUpdate(part)
  return (
    <Card title={title}>
      <div class="toggles">
        {names.map((name) => (
          <Toggle
            key={name}
            {...capabilities[name]}
            disabled={busy}
            checked={part.installation.capabilities?.[name] ?? false}
            onChange={(on) =>
              save({ capabilities: { [name]: on } }, `${capabilities[name].label} is ${on ? 'on' : 'off'}.`)
            }
          />
        ))}
      </div>
      <FailureNotice failure={failure} />
    </Card>
  )
}

interface IdentitySecretsProps {
  siteKey: string
  keyIds: string[]
  onRotated: () => Promise<void>
}

function IdentitySecrets({ siteKey, keyIds, onRotated }: IdentitySecretsProps) {
  const { api } = useConsole()
  const last = keyIds.length > 1 ? ' The older of the two becomes invalid now.' : ''
  return (
    <SecretsCard
      name="identity secret"
      explanation={`A new secret is created and shown once. The current one stays valid until the next rotation, so that your backend can switch.${last}`}
      advice="Keep it on your server, never on a page. It is shown only once."
      rotate={async () => {
        const { kid, secret } = (await api.workspaces.rotateIdentitySecret({ siteKey })).identitySecret!
        return { label: `Secret (key ${kid})`, secret }
      }}
      onRotated={() => void onRotated()}
    >
      <p class="hint">
        For developers: your server says who a visitor is, and signs it with a secret. The newest is first.
      </p>
      <ul class="stack plain-list">
        {keyIds.map((kid, index) => (
          <li key={kid}>
            <span class="mono">{kid}</span>
            <span class="hint">{index === 0 ? 'current' : 'valid until the next rotation'}</span>
          </li>
        ))}
      </ul>
    </SecretsCard>
  )
}

function DeleteInstallation({ installation: { publicSiteKey, appearance } }: Pick<InstallationPart, 'installation'>) {
  const { api, router, announcer } = useConsole()
  return (
    <DeleteCard
      kind="website"
      name={appearance?.title || publicSiteKey}
      explanation="Its visitors’ chats end, and their sessions and conversations are removed. Leads stay."
      onDelete={async () => {
        await api.workspaces.deleteInstallation({ siteKey: publicSiteKey })
        announcer.say('Website deleted.')
        router.go(pathOf({ view: 'installations' }))
      }}
    />
  )
}

function StatusCard(part: InstallationPart) {
  const { enabled } = part.installation
  const { update } = useUpdate(part)
  return (
    <Card
      title="Status"
      actions={
        <EnableButton
          enabled={enabled}
          what="this website"
          action="Disable website"
          explanation="New visitor sessions with this site key are rejected. Conversations are kept. You can enable it again."
          set={(on) => update({ enabled: on }, on ? 'Website enabled.' : 'Website disabled.')}
        />
      }
    >
      <p>
        <EnabledTag enabled={enabled} />{' '}
        {enabled ? 'The chat appears at these addresses.' : 'The chat appears nowhere.'}
      </p>
    </Card>
  )
}
