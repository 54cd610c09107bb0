import { useConsole } from '../console-context.ts'
import { useLeadTitles } from '../leads/lead-titles.ts'
import { backTo, pathOf } from '../router.ts'
import { useDestinations } from '../subscriptions/destinations.ts'
import { eventText } from '../subscriptions/subscription-words.ts'
import { useLoad, WhenLoaded } from '../ui/load.tsx'
import { Card, Facts, Page } from '../ui/page.tsx'
import { Attempts, latestFirst, StatusTag } from './attempts.tsx'

const pollMs = 3000

export function DeliveryView({ deliveryId }: { deliveryId: string }) {
  const { api } = useConsole()
  const loaded = useLoad(
    async () => latestFirst((await api.leads.listDeliveryAttempts({ deliveryId })).attempts),
    [deliveryId],
    pollMs,
  )
  const { subscriptionId, leadId = '' } = loaded.value?.[0] ?? {}
  const { names } = useDestinations()
  const titleOf = useLeadTitles([leadId])
  return (
    <Page title="Delivery" back={backTo('deliveries')}>
      <WhenLoaded loaded={loaded} what="delivery">
        {(attempts) => {
          const [latest] = attempts
          if (!latest) return null
          return (
            <>
              <Card title="Details">
                <Facts
                  of={[
                    ['Status', <StatusTag status={latest.status} tries={latest.attemptNumber} />],
                    [
                      'Destination',
                      <a class="breakable" href={pathOf({ view: 'subscription', subscriptionId: subscriptionId! })}>
                        {names.get(subscriptionId!) ?? subscriptionId}
                      </a>,
                    ],
                    [
                      'Lead',
                      leadId && (
                        <a href={pathOf({ view: 'lead', leadId })}>
                          <bdi>{titleOf(leadId)}</bdi>
                        </a>
                      ),
                    ],
                    ['Event', eventText(latest.eventType)],
                  ]}
                />
                <details>
                  <summary>More</summary>
                  <Facts
                    of={[
                      ['Delivery', <code>{deliveryId}</code>],
                      ['Type of the event', latest.eventType && <code>{latest.eventType}</code>],
                    ]}
                  />
                </details>
              </Card>
              <Card title="Attempts">
                <Attempts attempts={attempts} onRetried={loaded.reload} />
              </Card>
            </>
          )
        }}
      </WhenLoaded>
    </Page>
  )
}
