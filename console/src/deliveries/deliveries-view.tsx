import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { waitOf } from '../../../contract/delivery-waits.ts'
import { useConsole } from '../console-context.ts'
import { useLeadTitles } from '../leads/lead-titles.ts'
import { areaName, type KnownRoute, pathOf } from '../router.ts'
import { useDestinations } from '../subscriptions/destinations.ts'
import { eventText } from '../subscriptions/subscription-words.ts'
import { countOf, hoursAgo } from '../time.ts'
import { SelectField } from '../ui/form.tsx'
import { PagedList, usePages } from '../ui/load.tsx'
import { Empty, Notice, Page, When } from '../ui/page.tsx'
import { RetryButton, StatusTag } from './attempts.tsx'
import { deliveryStatuses, outcomeText, statusByName } from './delivery-words.ts'

const pollMs = 4000

/** Choices for the time of creation, in hours before now. */
export const periods = [
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
  ['720', 'Last 30 days'],
] as const

type Filter = Omit<Extract<KnownRoute, { view: 'deliveries' }>, 'view'>

export function DeliveriesView({ status, subscription: subscriptionId, hours }: Filter) {
  const { api, router } = useConsole()
  const statusFilter = statusByName(status)
  const destinations = useDestinations()
  const list = usePages(
    (pageToken) => {
      const statuses = statusFilter === undefined ? [] : [statusFilter]
      const createdSince = Number(hours) > 0 ? hoursAgo(Number(hours)) : undefined
      return api.leads.listDeliveries({ pageToken, subscriptionId, statuses, createdSince })
    },
    'deliveries',
    [status, subscriptionId, hours],
  )
  const titleOf = useLeadTitles(list.items.map(({ leadId }) => leadId))
  const hasPending = list.items.some(({ status }) => !['destination', undefined].includes(waitOf(status)))
  const disabled = destinations.all.filter(({ status }) => status === SubscriptionStatus.DISABLED).length
  const chosen: Filter = { status, subscription: subscriptionId, hours }
  const filter = (name: keyof Filter) => ({
    value: chosen[name] ?? '',
    onChange: (value: string) => router.go(pathOf({ view: 'deliveries', ...chosen, [name]: value })),
  })
  const empty = Object.values(chosen).some(Boolean) ? (
    <Empty icon="deliveries" title="No deliveries match">
      <a class="button" href={pathOf({ view: 'deliveries' })}>
        Show all deliveries
      </a>
    </Empty>
  ) : (
    <Empty icon="deliveries" title="No deliveries yet">
      <p>
        <a href={pathOf({ view: 'subscriptions' })}>Destinations</a> get leads automatically. You can also send one from{' '}
        <a href={pathOf({ view: 'leads' })}>Leads</a>.
      </p>
    </Empty>
  )

  return (
    <Page title={areaName('deliveries')} lead="Leads and events on their way to destinations.">
      {disabled > 0 && (
        <Notice tone="warning">
          {countOf(disabled, '# destination is disabled.', '# destinations are disabled.')} New deliveries wait.{' '}
          <a href={pathOf({ view: 'subscriptions' })}>Show destinations</a>
        </Notice>
      )}
      <div class="bar">
        <SelectField
          label="Status"
          options={[['', 'All'], ...Object.entries(deliveryStatuses).map(([name, [text]]) => [name, text] as const)]}
          {...filter('status')}
        />
        <SelectField label="Destination" options={[['', 'All'], ...destinations.names]} {...filter('subscription')} />
        <SelectField label="Created" options={[['', 'Any time'], ...periods]} {...filter('hours')} />
      </div>
      <PagedList list={list} what="deliveries" empty={empty} everyMs={hasPending ? pollMs : undefined}>
        {({ deliveryId, subscriptionId, leadId, status, latestAttempt, updatedAt }) => {
          const destination = destinations.names.get(subscriptionId)
          // An attempt without an outcome has not been made yet.
          const outcome = latestAttempt && outcomeText(latestAttempt)
          const lead = titleOf(leadId)
          return (
            <li key={deliveryId} class="table-line">
              <a class="table-row" href={pathOf({ view: 'delivery', deliveryId })}>
                <StatusTag status={status} tries={latestAttempt?.attemptNumber} />
                <span class="table-main">
                  <span class="table-title breakable">{destination ?? subscriptionId}</span>
                  <span class="table-sub ellipsis">
                    {outcome && `${outcome} · attempt ${latestAttempt.attemptNumber} · `}
                    {lead ? <bdi>{lead}</bdi> : eventText(latestAttempt?.eventType)}
                  </span>
                  {latestAttempt?.responseText && (
                    <span class="table-sub ellipsis">
                      Answer: <bdi>{latestAttempt.responseText}</bdi>
                    </span>
                  )}
                </span>
                <When at={updatedAt} />
              </a>
              {latestAttempt && (
                <RetryButton attempt={latestAttempt} of={`to ${destination}`} onRetried={list.reload} />
              )}
            </li>
          )
        }}
      </PagedList>
    </Page>
  )
}
