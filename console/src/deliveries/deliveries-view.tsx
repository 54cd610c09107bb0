import { useEffect } from 'preact/hooks'
import type { Delivery } from '#proto/lead/v1/delivery_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { useLoad } from '../ui/load.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { usePages } from '../ui/pages.ts'
import { When } from '../ui/when.tsx'
import { deliveryStatuses, isPending, outcomeText, statusByName } from './delivery-words.ts'
import { StatusTag } from './status-tag.tsx'

const pollMs = 4000

export function DeliveriesView({ status, subscriptionId }: { status?: string; subscriptionId?: string }) {
  const { api, router } = useConsole()
  const statusFilter = statusByName(status)
  const subscriptions = useLoad(async () => (await api.leads.listSubscriptions({})).subscriptions, [])
  const list = usePages<Delivery>(
    async (pageToken) => {
      const { deliveries, nextPageToken } = await api.leads.listDeliveries({
        pageToken,
        subscriptionId,
        statuses: statusFilter === undefined ? [] : [statusFilter],
      })
      return { items: deliveries, nextPageToken }
    },
    ({ deliveryId }) => deliveryId,
    [status, subscriptionId],
  )
  const hasPending = list.items.some((delivery) => isPending(delivery.status))
  useEffect(() => {
    if (!hasPending) return
    const timer = setInterval(() => document.visibilityState === 'visible' && void list.reload(), pollMs)
    return () => clearInterval(timer)
  }, [hasPending, status, subscriptionId])
  const destinations = new Map(subscriptions.value?.map((known) => [known.subscriptionId, known.destinationUrl]))
  const filtered = status !== undefined || subscriptionId !== undefined
  const filter = (change: { status?: string; subscriptionId?: string }) =>
    router.go(pathOf({ view: 'deliveries', status, subscriptionId, ...change }))

  return (
    <Page
      title="Deliveries"
      lead="Leads sent to destinations. Accepted means that the destination accepted the request."
      actions={
        <button type="button" class="button" disabled={list.loading} onClick={() => void list.reload()}>
          Refresh
        </button>
      }
    >
      <div class="filter-bar">
        <label>
          Status
          <select
            class="input"
            value={status ?? ''}
            onChange={(event) => filter({ status: event.currentTarget.value || undefined })}
          >
            <option value="">All</option>
            {[...deliveryStatuses.values()].map(({ name, text }) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          Subscription
          <select
            class="input"
            value={subscriptionId ?? ''}
            onChange={(event) => filter({ subscriptionId: event.currentTarget.value || undefined })}
          >
            <option value="">All</option>
            {subscriptions.value?.map((known) => (
              <option key={known.subscriptionId} value={known.subscriptionId}>
                {known.destinationUrl}
              </option>
            ))}
          </select>
        </label>
      </div>
      <FailureNotice failure={list.failure} retry={() => void list.reload()} />
      {list.first && <Loading label="Loading deliveries" />}
      {!list.first && !list.failure && list.items.length === 0 && (
        <Empty icon="deliveries" title={filtered ? 'No deliveries match' : 'No deliveries yet'}>
          {filtered ? (
            <a class="button" href={pathOf({ view: 'deliveries' })}>
              Show all deliveries
            </a>
          ) : (
            <p>
              A <a href={pathOf({ view: 'subscriptions' })}>subscription</a> sends leads automatically. You can also
              send one from <a href={pathOf({ view: 'leads' })}>Leads</a>.
            </p>
          )}
        </Empty>
      )}
      {list.items.length > 0 && (
        <ul class="table">
          {list.items.map((delivery) => (
            <DeliveryRow
              key={delivery.deliveryId}
              delivery={delivery}
              destination={destinations.get(delivery.subscriptionId)}
            />
          ))}
        </ul>
      )}
      {list.hasMore && (
        <button type="button" class="button ghost more" disabled={list.loading} onClick={() => void list.more()}>
          Load earlier deliveries
        </button>
      )}
    </Page>
  )
}

export function DeliveryRow({ delivery, destination }: { delivery: Delivery; destination: string | undefined }) {
  const { deliveryId, leadId, subscriptionId, status, latestAttempt, updatedAt } = delivery
  return (
    <li>
      <a class="table-row" href={pathOf({ view: 'delivery', deliveryId })}>
        <StatusTag status={status} />
        <span class="table-main">
          <span class="table-title breakable">{destination ?? subscriptionId}</span>
          <span class="table-sub">
            <span class="mono">{leadId}</span>
            {latestAttempt && ` · attempt ${latestAttempt.attemptNumber}`}
            {latestAttempt && outcomeText(latestAttempt) && ` · ${outcomeText(latestAttempt)}`}
          </span>
        </span>
        <When at={updatedAt} />
      </a>
    </li>
  )
}
