import type { JSX } from 'preact'
import { useConsole } from '../console-context.ts'
import { fieldWords } from '../failures.ts'
import { pathOf } from '../router.ts'
import { CopyButton, DeleteCard, EnableButton, EnabledTag, SecretsCard } from '../ui/dialog.tsx'
import { EntryList, NameCard, Toggle } from '../ui/form.tsx'
import { Card, FailureNotice } from '../ui/page.tsx'
import { AppearanceCard, LogoCard } from './appearance-card.tsx'
import { AvailabilityCard } from './availability-card.tsx'
import { FormsCard } from './forms-card.tsx'
import { capabilities, capabilityNames, originProblem, snippetOf, toOrigin, websiteName } from './installation-words.ts'
import { ConsentCard, UnseenCard } from './privacy-cards.tsx'
import { TranslationsCard } from './translations-card.tsx'
import { type InstallationPart, useUpdate } from './update.ts'

export type Tab = 'install' | 'look' | 'hours' | 'forms' | 'privacy' | 'keys'

type TabPart = InstallationPart & { onRotated: () => Promise<void> }

const cards: Record<Tab, ((part: TabPart) => JSX.Element)[]> = {
  install: [SnippetCard, OriginsCard, WebsiteNameCard, capabilitiesCard('Features', false), StatusCard, DeleteWebsite],
  look: [AppearanceCard, LogoCard, TranslationsCard],
  hours: [AvailabilityCard],
  forms: [capabilitiesCard('Forms', true), FormsCard],
  privacy: [ConsentCard, UnseenCard],
  keys: [IdentitySecrets],
}

export const TabContent = ({ tab, ...part }: TabPart & { tab: string }) => (
  <>
    {(cards[tab as Tab] ?? cards.install).map((SettingsCard, index) => (
      <SettingsCard key={index} {...part} />
    ))}
  </>
)

function SnippetCard({ installation }: InstallationPart) {
  const snippet = snippetOf(location.origin, installation.publicSiteKey)
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
  const { update } = useUpdate(part)
  return (
    <Card title="Addresses">
      <EntryList
        label="Addresses"
        placeholder="shop.example"
        read={toOrigin}
        problemOf={originProblem}
        hint="Only pages there can show the chat. Changes take effect at once. The last one stays."
        entries={origins}
        onChange={(changed) => changed.length > 0 && update({ origins: changed }, 'Addresses saved.')}
      />
    </Card>
  )
}

function WebsiteNameCard(part: InstallationPart) {
  const { update } = useUpdate(part)
  return <NameCard name={part.installation.name ?? ''} save={(name) => update({ name }, 'Name saved.')} />
}

/** Returns the card of the forms' switches, or that of all others. */
function capabilitiesCard(title: string, isOfForms: boolean) {
  const names = capabilityNames.filter((name) => /Form$/.test(name) === isOfForms)
  return function CapabilitiesCard(part: InstallationPart) {
    const { busy, failure, save } = useUpdate(part)
    return (
      <Card title={title}>
        <div class="toggles">
          {names.map((name) => (
            <Toggle
              key={name}
              label={fieldWords([name])}
              hint={capabilities[name]}
              disabled={busy}
              checked={part.installation.capabilities?.[name] ?? false}
              onChange={(on) =>
                save(
                  { capabilities: { [name]: on } },
                  on ? `${fieldWords([name])} is on.` : `${fieldWords([name])} is off.`,
                )
              }
            />
          ))}
        </div>
        <FailureNotice failure={failure} />
      </Card>
    )
  }
}

function IdentitySecrets({ installation, onRotated }: TabPart) {
  const { publicSiteKey: siteKey, identityKeyIds: keyIds } = installation
  const { api } = useConsole()
  const last = keyIds.length > 1 ? ' The older of the two becomes invalid now.' : ''
  return (
    <SecretsCard
      title="Identity secrets"
      what="identity secret"
      explanation={`A new secret is created and shown once. The current one stays valid until the next rotation, so that your backend can switch.${last}`}
      advice="Keep it on your server, never on a page. It is shown only once."
      rotate={async () => {
        const { kid, secret } = (await api.workspaces.rotateIdentitySecret({ siteKey })).identitySecret!
        return { label: `Secret (key ${kid})`, secret }
      }}
      onRotated={onRotated}
    >
      <p class="hint">
        For developers: your server says who a visitor is, and signs it with a secret. The newest is first.
      </p>
      <ul class="stack plain-list">
        {keyIds.map((kid, index) => (
          <li key={kid}>
            <code>{kid}</code>
            <span class="hint">{index === 0 ? <>current</> : 'valid until the next rotation'}</span>
          </li>
        ))}
      </ul>
    </SecretsCard>
  )
}

function DeleteWebsite({ installation }: InstallationPart) {
  const { publicSiteKey: siteKey } = installation
  const { api, router } = useConsole()
  return (
    <DeleteCard
      what="website"
      name={websiteName(installation)}
      explanation="Its visitors’ chats end, and their sessions and conversations are removed. Leads stay."
      onDelete={async () => {
        await api.workspaces.deleteInstallation({ siteKey })
        router.go(pathOf({ view: 'installations' }))
      }}
      done="Website deleted."
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
