import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { Confirm, CopyOnce } from '../ui/dialog.tsx'
import { Field } from '../ui/field.tsx'
import { Card } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'
import type { SubscriptionPart } from './subscription-view.tsx'

/** Seconds until the previous secret expires. */
const overlaps: [number, string][] = [
  [0, 'immediately'],
  [3600, 'in 1 hour'],
  [86_400, 'in 24 hours'],
  [604_800, 'in 7 days'],
]

/** Signing secrets, masked. A new secret is shown once. */
export function SecretCard({ subscription, onChanged }: SubscriptionPart) {
  const { api } = useConsole()
  const [asking, setAsking] = useState(false)
  const [overlapSeconds, setOverlap] = useState(86_400)
  const [secret, setSecret] = useState<string>()
  return (
    <Card
      title="Signing secrets"
      actions={
        <button type="button" class="button small" onClick={() => setAsking(true)}>
          Rotate
        </button>
      }
    >
      <ul class="plain-list">
        {subscription.secrets.map(({ secretId, masked, createdAt, expiresAt }) => (
          <li key={secretId}>
            <span class="mono">{masked}</span>
            <span class="hint">
              since <When at={createdAt} full />
              {expiresAt && (
                <>
                  , signs until <When at={expiresAt} full />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
      {asking && (
        <Confirm
          title="Rotate the signing secret?"
          action="Create new secret"
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            const made = await api.leads.rotateSubscriptionSecret({
              subscriptionId: subscription.subscriptionId,
              overlapSeconds,
            })
            setSecret(made.secret)
          }}
        >
          <p>
            A new secret is created, shown once and used from now on. Deliveries also carry the signature of the
            previous secret until it expires, so that the receiver can switch.
          </p>
          <Field label="Previous secret expires">
            {(attributes) => (
              <select
                {...attributes}
                class="input"
                value={overlapSeconds}
                onChange={(event) => setOverlap(Number(event.currentTarget.value))}
              >
                {overlaps.map(([seconds, name]) => (
                  <option key={seconds} value={seconds}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </Confirm>
      )}
      {secret !== undefined && (
        <CopyOnce
          title="New signing secret"
          label="Secret"
          secret={secret}
          onClose={() => {
            setSecret(undefined)
            void onChanged()
          }}
        >
          <p>Store it at the receiver now: it is shown only once.</p>
        </CopyOnce>
      )}
    </Card>
  )
}
