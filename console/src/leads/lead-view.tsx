import { useState } from 'preact/hooks'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { leadTitle } from '../../../contract/lead-title.ts'
import { backTo } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { Attempts } from '../deliveries/attempts.tsx'
import { conversationPath, pathOf } from '../router.ts'
import { type Destination, listDestinations, nameOf } from '../subscriptions/destinations.ts'
import { ActionButton } from '../ui/dialog.tsx'
import { SelectField } from '../ui/form.tsx'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Empty, Fact, Facts, FailureNotice, Page, When } from '../ui/page.tsx'
import { sourceText } from './lead-words.ts'

const pollMs = 5000

/** Shows one lead: its fields, its source and its deliveries. */
export function LeadView({ leadId }: { leadId: string }) {
  const { api } = useConsole()
  const loaded = useLoad(async () => (await api.leads.getLead({ leadId })).lead, [leadId])
  const attempts = useLoad(async () => (await api.leads.listDeliveryAttempts({ leadId })).attempts, [leadId], pollMs)
  const subscriptions = useLoad(() => listDestinations(api), [])
  const byDelivery = Map.groupBy(attempts.value ?? [], ({ deliveryId }) => deliveryId)
  const names = new Map(subscriptions.value?.map((known) => [known.subscriptionId, nameOf(known)]))
  const destinationOf = (id = '') => names.get(id) ?? id

  return (
    <Page title={loaded.value ? leadTitle(loaded.value) : 'Lead'} back={backTo('leads')}>
      <WhenLoaded loaded={loaded} name="lead">
        {({ fields, source, createdAt, conversationId }) => (
          <>
            <Card title="Details">
              <Facts>
                {Object.entries(fields).map(([name, value]) => (
                  <Fact key={name} name={name}>
                    <span class="multi-line" dir="auto">
                      {value}
                    </span>
                  </Fact>
                ))}
                <Fact name="Source">{sourceText(source)}</Fact>
                <Fact name="Captured">
                  <When at={createdAt} full />
                </Fact>
                <Fact name="Conversation">
                  {conversationId && <a href={conversationPath(conversationId)}>Open conversation</a>}
                </Fact>
                <Fact name="Lead ID">
                  <span class="mono breakable">{leadId}</span>
                </Fact>
              </Facts>
            </Card>
            <Card title="Deliveries">
              <FailureNotice failure={attempts.failure} retry={() => void attempts.reload()} />
              {attempts.value?.length === 0 && (
                <Empty icon="deliveries" title="Not sent yet">
                  <p>Send it to a destination below.</p>
                </Empty>
              )}
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
              <SendForm leadId={leadId} subscriptions={subscriptions.value ?? []} onSent={attempts.reload} />
            </Card>
          </>
        )}
      </WhenLoaded>
    </Page>
  )
}

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
      >
        Send lead
      </ActionButton>
    </div>
  )
}
