import { useState } from 'preact/hooks'
import { type Subscription, type SubscriptionAudit, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Confirm, useAction } from '../ui/dialog.tsx'
import { TextField, Toggle } from '../ui/field.tsx'
import { useLoad } from '../ui/load.ts'
import { FailureNotice, Loading, Notice } from '../ui/notice.tsx'
import { Card, Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'
import { MappedFields } from './mapped-fields.tsx'
import { SecretCard } from './secret-card.tsx'
import { actionText, destinationProblem, disabledText } from './subscription-words.ts'

export function SubscriptionView({ subscriptionId }: { subscriptionId: string }) {
  const { api } = useConsole()
  const loaded = useLoad(() => api.leads.getSubscription({ subscriptionId }), [subscriptionId])
  const subscription = loaded.value?.subscription
  return (
    <Page
      title={subscription ? hostOf(subscription.destinationUrl) : 'Subscription'}
      back={{ path: pathOf({ view: 'subscriptions' }), label: 'Subscriptions' }}
      actions={
        <a class="button" href={pathOf({ view: 'deliveries', subscriptionId })}>
          View deliveries
        </a>
      }
    >
      <FailureNotice failure={loaded.failure} retry={() => void loaded.reload()} />
      {!subscription && loaded.loading && <Loading label="Loading subscription" />}
      {subscription && (
        <>
          <StatusCard subscription={subscription} onChanged={loaded.reload} />
          <EditCard
            key={String(subscription.updatedAt?.seconds)}
            subscription={subscription}
            onChanged={loaded.reload}
          />
          <SecretCard subscription={subscription} onChanged={loaded.reload} />
          <AuditCard audit={loaded.value?.audit ?? []} />
        </>
      )}
    </Page>
  )
}

export interface SubscriptionPart {
  subscription: Subscription
  onChanged: () => Promise<void>
}

function StatusCard({ subscription, onChanged }: SubscriptionPart) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const [asking, setAsking] = useState(false)
  const { subscriptionId, status, disabledReason, heldDeliveries } = subscription
  const enabled = status === SubscriptionStatus.ENABLED

  async function set(to: SubscriptionStatus) {
    await api.leads.updateSubscription({ subscriptionId, status: to })
    announcer.say(to === SubscriptionStatus.ENABLED ? 'Subscription enabled.' : 'Subscription disabled.')
    await onChanged()
  }

  return (
    <Card
      title="Status"
      actions={
        enabled ? (
          <button type="button" class="button small" onClick={() => setAsking(true)}>
            Disable
          </button>
        ) : (
          <button
            type="button"
            class="button primary small"
            disabled={busy}
            onClick={() => run(() => set(SubscriptionStatus.ENABLED))}
          >
            Enable
          </button>
        )
      }
    >
      {enabled ? (
        <Notice tone="success">Enabled. Leads are sent.</Notice>
      ) : (
        <Notice tone="warning">
          Disabled. {disabledText(disabledReason)}{' '}
          {heldDeliveries > 0
            ? `${heldDeliveries} ${heldDeliveries === 1 ? 'delivery is' : 'deliveries are'} held and will be sent when you enable it.`
            : 'New deliveries are held, not lost.'}
        </Notice>
      )}
      <FailureNotice failure={failure} />
      {asking && (
        <Confirm
          title="Disable this subscription?"
          action="Disable"
          danger
          onClose={() => setAsking(false)}
          onConfirm={() => set(SubscriptionStatus.DISABLED)}
        >
          <p>
            Nothing more is sent to this destination. Deliveries are held, not lost, and are sent when you enable it
            again. A delivery in progress still finishes.
          </p>
        </Confirm>
      )}
    </Card>
  )
}

function EditCard({ subscription, onChanged }: SubscriptionPart) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const [destinationUrl, setDestination] = useState(subscription.destinationUrl)
  const [names, setNames] = useState<string[]>(subscription.mappedFields)
  const [automatic, setAutomatic] = useState(subscription.automatic)
  const [problem, setProblem] = useState<string>()
  // Sends only the edited fields, so that concurrent changes of other fields are kept.
  const changes = {
    ...(destinationUrl.trim() !== subscription.destinationUrl && { destinationUrl: destinationUrl.trim() }),
    ...(names.join() !== subscription.mappedFields.join() && { mappedFields: { names } }),
    ...(automatic !== subscription.automatic && { automatic }),
  }

  function save(event: Event) {
    event.preventDefault()
    const urlProblem = destinationProblem(destinationUrl.trim())
    setProblem(urlProblem)
    if (urlProblem !== undefined) return
    void run(async () => {
      await api.leads.updateSubscription({ subscriptionId: subscription.subscriptionId, ...changes })
      announcer.say('Subscription saved.')
      await onChanged()
    })
  }

  return (
    <Card title="Destination">
      <form class="stack" onSubmit={save} noValidate>
        <TextField
          label="Destination URL"
          error={problem}
          inputMode="url"
          maxLength={2048}
          value={destinationUrl}
          onChange={setDestination}
        />
        <MappedFields names={names} onChange={setNames} />
        <Toggle label="Send every lead automatically" checked={automatic} onChange={setAutomatic} />
        <FailureNotice failure={failure} />
        <div class="button-row">
          <button type="submit" class="button primary" disabled={busy || Object.keys(changes).length === 0}>
            Save changes
          </button>
        </div>
      </form>
    </Card>
  )
}

function AuditCard({ audit }: { audit: SubscriptionAudit[] }) {
  return (
    <Card title="History">
      {audit.length === 0 && <p class="hint">No entries.</p>}
      <ol class="plain-list">
        {audit.map(({ at, actor, action, attemptId, disabledReason }) => (
          <li key={`${at?.seconds} ${at?.nanos} ${action} ${attemptId}`}>
            <span>
              {actionText(action)} by <strong>{actor === 'service' ? 'the service' : actor}</strong>
              {action === 'disabled' && `. ${disabledText(disabledReason)}`}
            </span>
            <span class="hint">
              <When at={at} full />
              {attemptId && <span class="mono breakable"> {attemptId}</span>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  )
}

const hostOf = (url: string) => URL.parse(url)?.host ?? url
