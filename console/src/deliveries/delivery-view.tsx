import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { useLoad } from '../ui/load.ts'
import { FailureNotice, Loading } from '../ui/notice.tsx'
import { Card, Fact, Facts, Page } from '../ui/page.tsx'
import { Attempts } from './attempts.tsx'
import { StatusTag } from './status-tag.tsx'

const pollMs = 3000

/** One delivery and its attempts. */
export function DeliveryView({ deliveryId }: { deliveryId: string }) {
  const { api } = useConsole()
  const loaded = useLoad(
    async () => (await api.leads.listDeliveryAttempts({ deliveryId })).attempts,
    [deliveryId],
    pollMs,
  )
  const attempts = loaded.value ?? []
  const latest = attempts.reduce<(typeof attempts)[number] | undefined>(
    (found, attempt) => (found && found.attemptNumber > attempt.attemptNumber ? found : attempt),
    undefined,
  )
  const subscription = useLoad(
    async () => latest && (await api.leads.getSubscription({ subscriptionId: latest.subscriptionId })).subscription,
    [latest?.subscriptionId],
  )
  return (
    <Page title="Delivery" back={{ path: pathOf({ view: 'deliveries' }), label: 'Deliveries' }}>
      <FailureNotice failure={loaded.failure} retry={() => void loaded.reload()} />
      {!loaded.value && loaded.loading && <Loading label="Loading delivery" />}
      {latest && (
        <>
          <Card title="Details">
            <Facts>
              <Fact name="Status">
                <StatusTag status={latest.status} />
              </Fact>
              <Fact name="Destination">
                <a class="breakable" href={pathOf({ view: 'subscription', subscriptionId: latest.subscriptionId })}>
                  {subscription.value?.destinationUrl ?? latest.subscriptionId}
                </a>
              </Fact>
              <Fact name="Lead">
                <a class="mono" href={pathOf({ view: 'lead', leadId: latest.leadId })}>
                  {latest.leadId}
                </a>
              </Fact>
              <Fact name="Delivery">
                <span class="mono breakable">{deliveryId}</span>
              </Fact>
            </Facts>
          </Card>
          <Card title="Attempts">
            <Attempts attempts={attempts} onRetried={loaded.reload} />
          </Card>
        </>
      )}
    </Page>
  )
}
