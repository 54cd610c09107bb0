import { useState } from 'preact/hooks'
import { type Subscription, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { useConsole } from '../console-context.ts'
import { Attempts } from '../deliveries/attempts.tsx'
import { conversationPath, pathOf } from '../router.ts'
import { useAction } from '../ui/dialog.tsx'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Card, Fact, Facts, Page } from '../ui/page.tsx'
import { When } from '../ui/when.tsx'
import { leadTitle, sourceText } from './lead-words.ts'

const pollMs = 5000

/** One lead: its fields, its source and its deliveries. */
export function LeadView({ leadId }: { leadId: string }) {
  const { api } = useConsole()
  const lead = useLoad(async () => (await api.leads.getLead({ leadId })).lead, [leadId])
  const attempts = useLoad(async () => (await api.leads.listDeliveryAttempts({ leadId })).attempts, [leadId], pollMs)
  const subscriptions = useLoad(async () => (await api.leads.listSubscriptions({})).subscriptions, [])
  const byDelivery = Map.groupBy(attempts.value ?? [], ({ deliveryId }) => deliveryId)
  const destinationOf = (id: string | undefined) =>
    subscriptions.value?.find(({ subscriptionId }) => subscriptionId === id)?.destinationUrl ?? id

  return (
    <Page
      title={lead.value ? leadTitle(lead.value) : 'Lead'}
      back={{ path: pathOf({ view: 'leads' }), label: 'Leads' }}
    >
      <FailureNotice failure={lead.failure} retry={() => void lead.reload()} />
      {!lead.value && lead.loading && <Loading label="Loading lead" />}
      {lead.value && (
        <Card title="Details">
          <Facts>
            {Object.entries(lead.value.fields).map(([name, value]) => (
              <Fact key={name} name={name}>
                <span class="multi-line" dir="auto">
                  {value}
                </span>
              </Fact>
            ))}
            <Fact name="Source">{sourceText(lead.value.source)}</Fact>
            <Fact name="Captured">
              <When at={lead.value.createdAt} full />
            </Fact>
            <Fact name="Conversation">
              {lead.value.conversationId && (
                <a class="mono breakable" href={conversationPath(lead.value.conversationId)}>
                  {lead.value.conversationId}
                </a>
              )}
            </Fact>
            <Fact name="Lead ID">
              <span class="mono breakable">{leadId}</span>
            </Fact>
          </Facts>
        </Card>
      )}
      {lead.value && (
        <Card title="Deliveries">
          <FailureNotice failure={attempts.failure} retry={() => void attempts.reload()} />
          {attempts.value?.length === 0 && (
            <Empty icon="deliveries" title="Not sent yet">
              <p>Send it to a destination below.</p>
            </Empty>
          )}
          {[...byDelivery].map(([deliveryId, ofDelivery]) => (
            <section class="lead-delivery" key={deliveryId} aria-label={destinationOf(ofDelivery[0]?.subscriptionId)}>
              <h3>
                <a class="breakable" href={pathOf({ view: 'delivery', deliveryId })}>
                  {destinationOf(ofDelivery[0]?.subscriptionId)}
                </a>
              </h3>
              <Attempts attempts={ofDelivery} onRetried={attempts.reload} />
            </section>
          ))}
          <SendForm leadId={leadId} subscriptions={subscriptions.value ?? []} onSent={attempts.reload} />
        </Card>
      )}
    </Page>
  )
}

function SendForm({
  leadId,
  subscriptions,
  onSent,
}: {
  leadId: string
  subscriptions: Subscription[]
  onSent: () => Promise<void>
}) {
  const { api, announcer } = useConsole()
  const { busy, failure, run } = useAction()
  const enabled = subscriptions.filter(({ status }) => status === SubscriptionStatus.ENABLED)
  const [chosen, setChosen] = useState<string>()
  const subscriptionId = chosen ?? enabled[0]?.subscriptionId
  if (!subscriptionId) {
    return (
      <p class="hint">
        To send this lead, <a href={pathOf({ view: 'subscriptions' })}>add or enable a subscription</a>.
      </p>
    )
  }
  function send(event: Event) {
    event.preventDefault()
    void run(async () => {
      await api.leads.createDeliveryAttempt({ leadId, subscriptionId })
      announcer.say('Lead queued for delivery.')
      await onSent()
    })
  }
  return (
    <form class="send-form" onSubmit={send}>
      <label>
        Send to
        <select class="input" value={subscriptionId} onChange={(event) => setChosen(event.currentTarget.value)}>
          {enabled.map((known) => (
            <option key={known.subscriptionId} value={known.subscriptionId}>
              {known.destinationUrl}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" class="button primary" disabled={busy}>
        Send lead
      </button>
      <FailureNotice failure={failure} />
    </form>
  )
}
