import { useState } from 'preact/hooks'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { leadTitle } from '../../../contract/lead-title.ts'
import { useConsole } from '../console-context.ts'
import { Attempts } from '../deliveries/attempts.tsx'
import { backTo, pathOf } from '../router.ts'
import { type Destination, nameOf, useDestinations } from '../subscriptions/destinations.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { SelectField } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Empty, Facts, FailureNotice, Page, When } from '../ui/page.tsx'
import { namedFields, sourceText } from './lead-titles.ts'

const pollMs = 5000

export function LeadView({ leadId }: { leadId: string }) {
  const { api } = useConsole()
  const loaded = useLoad(async () => (await api.leads.getLead({ leadId })).lead, [leadId])
  const attempts = useLoad(async () => (await api.leads.listDeliveryAttempts({ leadId })).attempts, [leadId], pollMs)
  const destinations = useDestinations()
  const byDelivery = Map.groupBy(attempts.value ?? [], ({ deliveryId }) => deliveryId)
  const destinationOf = (id = '') => destinations.names.get(id) ?? id

  return (
    <Page title={loaded.value ? leadTitle(loaded.value) : 'Lead'} back={backTo('leads')}>
      <WhenLoaded loaded={loaded} what="lead">
        {({ fields, source, createdAt, conversationId }) => (
          <>
            <Card title="Details">
              <Facts
                of={[
                  ...namedFields(fields).map(([name, value]) => [name, multiLine(value)] as const),
                  ['Source', sourceText(source)],
                  ['Captured', <When at={createdAt} full />],
                  [
                    'Conversation',
                    conversationId && <a href={pathOf({ view: 'conversation', conversationId })}>Open conversation</a>,
                  ],
                  ['Lead ID', <code>{leadId}</code>],
                ]}
              />
            </Card>
            <Card title="Deliveries">
              <FailureNotice failure={attempts.failure} retry={attempts.reload} />
              {attempts.value?.length === 0 && <Empty icon="deliveries" title="Not sent yet" />}
              {[...byDelivery].map(([deliveryId, ofDelivery]) => (
                <section key={deliveryId} class="stack" aria-label={destinationOf(ofDelivery[0]?.subscriptionId)}>
                  <h3>
                    <a class="breakable" href={pathOf({ view: 'delivery', deliveryId })}>
                      {destinationOf(ofDelivery[0]?.subscriptionId)}
                    </a>
                  </h3>
                  <Attempts attempts={ofDelivery} onRetried={attempts.reload} />
                </section>
              ))}
              <SendForm leadId={leadId} subscriptions={destinations.all} onSent={attempts.reload} />
            </Card>
          </>
        )}
      </WhenLoaded>
    </Page>
  )
}

const multiLine = (text: string) => (
  <span class="multi-line" dir="auto">
    {text}
  </span>
)

interface SendFormProps {
  leadId: string
  subscriptions: Destination[]
  onSent: () => Promise<void>
}

function SendForm({ leadId, subscriptions, onSent }: SendFormProps) {
  const { api } = useConsole()
  const enabled = subscriptions.filter(({ status, isHook }) => status === SubscriptionStatus.ENABLED && !isHook)
  const [chosen, setChosen] = useState<string>()
  const subscriptionId = chosen ?? enabled[0]?.subscriptionId
  if (!subscriptionId) {
    return (
      <p class="hint">
        To send this lead, <a href={pathOf({ view: 'subscriptions' })}>add or enable a destination</a>.
      </p>
    )
  }
  return (
    <div class="bar">
      <SelectField
        label="Send to"
        value={subscriptionId}
        options={enabled.map((known) => [known.subscriptionId, nameOf(known)])}
        onChange={setChosen}
      />
      <ActionButton
        kind="primary"
        act={() => api.leads.createDeliveryAttempt({ leadId, subscriptionId }).then(onSent)}
        done="Lead queued for delivery."
        text="Send lead"
      />
    </div>
  )
}
