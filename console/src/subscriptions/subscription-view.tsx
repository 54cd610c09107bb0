import { useState } from 'preact/hooks'
import {
  type Subscription,
  type SubscriptionAudit,
  SubscriptionPurpose,
  SubscriptionStatus,
} from '#proto/lead/v1/subscription_pb.js'
import { useActorNames } from '../changes/changes-view.tsx'
import { useConsole } from '../console-context.ts'
import { backTo, pathOf } from '../router.ts'
import { ActionButton, DeleteCard, EnableButton, SecretsCard } from '../ui/dialog.tsx'
import { SelectField } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Notice, Page, When } from '../ui/page.tsx'
import type { SubscriptionPart } from './destinations.ts'
import { HeadersCard } from './headers-card.tsx'
import { RecoveryCard } from './recovery-card.tsx'
import { SubscriptionForm, type SubscriptionInput } from './subscription-form.tsx'
import { actionText, countOfDeliveries, disabledText } from './subscription-words.ts'

export function SubscriptionView({ subscriptionId }: { subscriptionId: string }) {
  const { api } = useConsole()
  const loaded = useLoad(() => api.leads.getSubscription({ subscriptionId }), [subscriptionId])
  const { name, destinationUrl } = loaded.value?.subscription ?? {}
  return (
    <Page
      title={name || URL.parse(destinationUrl ?? '')?.host || 'Destination'}
      back={backTo('subscriptions')}
      actions={
        <a class="button" href={pathOf({ view: 'deliveries', subscription: subscriptionId })}>
          View deliveries
        </a>
      }
    >
      <WhenLoaded loaded={loaded} what="destination">
        {({ subscription, audit }) => {
          if (!subscription) return null
          const part = { subscription, onChanged: loaded.reload }
          return (
            <>
              <StatusCard {...part} />
              <EditForm
                // Has only the fields of this form, so that a change by another card keeps what is typed here.
                key={JSON.stringify([subscription.destinationUrl, editedValues(subscription)])}
                {...part}
              />
              <SigningSecrets {...part} />
              <HeadersCard {...part} />
              <RecoveryCard {...part} />
              <AuditCard audit={audit} />
              <DeleteSubscription {...part} />
            </>
          )
        }}
      </WhenLoaded>
    </Page>
  )
}

const isHookPurpose = (purpose: SubscriptionPurpose) => purpose === SubscriptionPurpose.OPERATIONAL_EVENTS

function StatusCard({ subscription, onChanged }: SubscriptionPart) {
  const { api, router } = useConsole()
  const { subscriptionId, status, disabledReason, heldDeliveries, purpose } = subscription
  const isEnabled = status === SubscriptionStatus.ENABLED

  function set(enabled: boolean) {
    const next = enabled ? SubscriptionStatus.ENABLED : SubscriptionStatus.DISABLED
    return api.leads.updateSubscription({ subscriptionId, status: next }).then(onChanged)
  }

  /** Sends a sample and opens its delivery. */
  async function sendTest() {
    const { attempt } = await api.leads.sendTestDelivery({ subscriptionId })
    if (attempt) router.go(pathOf({ view: 'delivery', deliveryId: attempt.deliveryId }))
  }

  return (
    <Card
      title="Status"
      actions={
        <EnableButton
          enabled={isEnabled}
          what="this destination"
          action="Disable"
          explanation="Nothing more is sent to this destination. Deliveries wait, and are sent when you enable it again. A delivery in progress still finishes."
          done={['Destination enabled.', 'Destination disabled.']}
          set={set}
        />
      }
    >
      {isEnabled ? (
        <Notice tone="success" action={<ActionButton act={sendTest} done="Test sent." text="Send test" />}>
          {isHookPurpose(purpose) ? 'Enabled. Events are sent.' : 'Enabled. Leads are sent.'}
        </Notice>
      ) : (
        <Notice tone="warning">
          Disabled. {disabledText(disabledReason)}{' '}
          {heldDeliveries > 0
            ? countOfDeliveries(
                heldDeliveries,
                '# delivery waits and will be sent when you enable it.',
                '# deliveries wait and will be sent when you enable it.',
              )
            : 'New deliveries wait.'}
        </Notice>
      )}
    </Card>
  )
}

function DeleteSubscription({ subscription: { subscriptionId, name, destinationUrl } }: SubscriptionPart) {
  const { api, router } = useConsole()
  return (
    <DeleteCard
      what="destination"
      name={name || (URL.parse(destinationUrl)?.host ?? destinationUrl)}
      explanation="Nothing more is sent to this destination, and its deliveries are removed. Leads stay."
      onDelete={async () => {
        await api.leads.deleteSubscription({ subscriptionId })
        router.go(pathOf({ view: 'subscriptions' }))
      }}
      done="Destination deleted."
    />
  )
}

const editedValues = ({ name, mappedFields, automatic, policy, maxPerSecond, disableAfterNotFound }: Subscription) => ({
  name,
  destinationUrl: '',
  fields: mappedFields,
  automatic,
  policy: policy ?? { types: [], sources: [], installations: [] },
  maxPerSecond: String(maxPerSecond || ''),
  disableAfterNotFound: String(disableAfterNotFound),
})

function EditForm({ subscription, onChanged }: SubscriptionPart) {
  const { api, announcer } = useConsole()

  async function save({ destinationUrl }: SubscriptionInput, edited: Partial<SubscriptionInput>) {
    const numberOf = (text: string | undefined) => (text === undefined ? undefined : Number(text))
    const { subscription: changed } = await api.leads.updateSubscription({
      subscriptionId: subscription.subscriptionId,
      destinationUrl: destinationUrl.trim() || undefined,
      mappedFields: edited.fields && { names: edited.fields },
      name: edited.name?.trim(),
      policy: edited.policy,
      automatic: edited.automatic,
      maxPerSecond: numberOf(edited.maxPerSecond),
      disableAfterNotFound: numberOf(edited.disableAfterNotFound),
    })
    const isDropped = (changed?.droppedHeaders.length ?? 0) > subscription.droppedHeaders.length
    announcer.say(isDropped ? 'Destination saved. Custom headers were removed.' : 'Destination saved.')
    await onChanged()
  }

  return (
    <SubscriptionForm
      initial={editedValues(subscription)}
      present={subscription.destinationUrl}
      sentNames={subscription.sentNames}
      isHook={isHookPurpose(subscription.purpose)}
      action="Save changes"
      submit={save}
    />
  )
}

/** Choices for the time until the previous secret expires, in seconds. */
const overlaps = [
  ['0', 'at once'],
  ['3600', 'in 1 hour'],
  ['86400', 'in 24 hours'],
  ['604800', 'in 7 days'],
] as const

function SigningSecrets({ subscription: { subscriptionId, secrets }, onChanged }: SubscriptionPart) {
  const { api } = useConsole()
  const [overlap, setOverlap] = useState('86400')
  const [newest] = secrets
  const activate = (secretId: string) =>
    api.leads.activateSubscriptionSecret({ subscriptionId, secretId }).then(onChanged)
  return (
    <SecretsCard
      title="Signing secrets"
      what="signing secret"
      explanation="A new secret is created and shown once. Until the previous secret expires, webhook-signature has the signatures of both. X-Service-Webhook-Signature uses the previous secret until you activate the new one."
      advice="Store it at the receiver now: it is shown only once."
      rotate={async () => {
        const overlapSeconds = Number(overlap)
        const { secret } = await api.leads.rotateSubscriptionSecret({ subscriptionId, overlapSeconds })
        return { label: 'Secret', secret }
      }}
      onRotated={onChanged}
      fields={<SelectField label="Previous secret expires" value={overlap} options={overlaps} onChange={setOverlap} />}
    >
      <ul class="stack plain-list">
        {secrets.map(({ secretId, masked, createdAt, expiresAt }) => (
          <li key={secretId}>
            <code>{masked}</code>
            <span class="hint">
              since <When at={createdAt} full />
              {expiresAt && ', signs until '}
              <When at={expiresAt} full />
            </span>
          </li>
        ))}
      </ul>
      {newest && secrets.length > 1 && !newest.active && (
        <Notice
          tone="info"
          action={
            <ActionButton
              act={() => activate(newest.secretId)}
              done="New secret activated."
              text="Activate new secret"
            />
          }
        >
          The previous secret still signs X-Service-Webhook-Signature. Activate the new one when the receiver knows it.
        </Notice>
      )}
    </SecretsCard>
  )
}

function AuditCard({ audit }: { audit: SubscriptionAudit[] }) {
  const nameOf = useActorNames()
  return (
    <Card title="History">
      {audit.length === 0 && <p class="hint">No entries.</p>}
      <ol class="stack plain-list">
        {audit.map(({ at, actor, action, attemptId, disabledReason }) => (
          <li key={`${at?.seconds} ${at?.nanos} ${action} ${attemptId}`}>
            <span>
              {actionText(action)} by <strong>{actor === 'service' ? 'the service' : nameOf(actor)}</strong>
              {action === 'disabled' && `. ${disabledText(disabledReason)}`}
            </span>
            <span class="hint">
              <When at={at} full />
              {attemptId && <code> {attemptId}</code>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}
