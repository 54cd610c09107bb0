import { startRegistration } from '@simplewebauthn/browser'
import { useState } from 'preact/hooks'
import type { Passkey } from '#proto/operator/v1/operator_pb.js'
import { useConsole } from '../console-context.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { Form, TextField, useForm } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Notice, RowText, When } from '../ui/page.tsx'
import { NotificationsCard } from './notifications-card.tsx'

export function OwnAccount({ onChange }: { onChange: () => void }) {
  const { api } = useConsole()
  const loaded = useLoad(() => api.operators.getOwnAccount({}), [])
  return (
    <WhenLoaded loaded={loaded} what="your account">
      {({ operator, passkeys }) => (
        <>
          <NameAndMail
            name={operator?.name ?? ''}
            mail={operator?.mail ?? ''}
            onSaved={() => Promise.all([loaded.reload(), onChange()])}
          />
          <NotificationsCard />
          <Passkeys passkeys={passkeys} onChange={loaded.reload} />
        </>
      )}
    </WhenLoaded>
  )
}

function NameAndMail({ onSaved, ...stored }: { name: string; mail: string; onSaved: () => unknown }) {
  const { api, announcer, holder } = useConsole()
  const form = useForm({
    start: stored,
    async save(account) {
      const { confirmationMailed } = await api.operators.updateOwnAccount(account)
      announcer.say(confirmationMailed ? 'Open the link that was mailed to the new address.' : 'Your account is saved.')
      await holder.loadNew()
      onSaved()
    },
  })
  return (
    <Card title="Your account">
      <Form form={form} button="Save account" disabled={!form.isChanged}>
        <TextField label="Name" hint="Visitors see it." maxLength={128} {...form.field('name')} />
        <TextField
          label="Mail address"
          hint="For sign-in links. Only your team sees it."
          inputMode="email"
          maxLength={254}
          {...form.field('mail')}
        />
      </Form>
    </Card>
  )
}

function Passkeys({ passkeys, onChange }: { passkeys: Passkey[]; onChange: () => Promise<void> }) {
  const { api, announcer } = useConsole()
  const [refusal, setRefusal] = useState<string>()
  async function add() {
    setRefusal(undefined)
    const { optionsJson } = await api.operators.beginPasskey({ origin: location.origin })
    const response = await startRegistration({ optionsJSON: JSON.parse(optionsJson) }).catch((error: Error) => {
      setRefusal(
        error.name === 'InvalidStateError'
          ? 'This device has a passkey of yours already.'
          : 'No passkey was made. Your browser needs https, and a screen lock or a security key.',
      )
    })
    if (!response) return
    const [name = 'This device'] = /iPhone|iPad|Android|Windows|Mac|Linux/.exec(navigator.userAgent) ?? []
    await api.operators.addPasskey({ responseJson: JSON.stringify(response), name })
    announcer.say('Passkey added.')
    await onChange()
  }
  return (
    <Card title="Your passkeys" actions={<ActionButton act={add} text="Add a passkey" />}>
      {passkeys.length === 0 && <p class="hint">Sign in with your fingerprint, your face or a key, without a link.</p>}
      <ul class="table">
        {passkeys.map(({ passkeyId, name, createdAt, usedAt }) => (
          <li key={passkeyId} class="table-row">
            <RowText title={name}>
              Added <When at={createdAt} />
              {usedAt && (
                <>
                  , last used <When at={usedAt} />
                </>
              )}
            </RowText>
            <ActionButton
              aria-label={`Remove ${name}`}
              act={() => api.operators.removePasskey({ passkeyId }).then(onChange)}
              done="Passkey removed."
              text="Remove"
            />
          </li>
        ))}
      </ul>
      {refusal && <Notice tone="warning">{refusal}</Notice>}
    </Card>
  )
}
