import { toJson } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import { DeliverySchema, DeliveryStatusSchema } from '#proto/lead/v1/delivery_pb.js'
import { leadTitle } from '../../contract/lead-title.ts'
import { command, type Group } from '../command.ts'
import { allSubscriptions } from '../names.ts'
import { pageRows } from '../output.ts'
import { oneOf, UsageError } from '../usage.ts'
import { namedSubscription as named } from './destination-flags.ts'
import { workspace } from './workspace-flag.ts'

function timeOf(flag: string, text: string) {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new UsageError(`--${flag} must be an ISO time, like 2026-01-31T12:00:00Z`)
  return timestampFromDate(time)
}

const deliveryStatuses = Object.fromEntries(
  DeliveryStatusSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName, number }) => [localName.toLowerCase(), number]),
)

/** A delivery of the list, as JSON. */
interface ListedDelivery {
  deliveryId: string
  subscriptionId: string
  status: string
  createdAt: string
  /** URL of the destination of a subscription. */
  destination?: string
  /** Title of the lead. */
  lead?: string
  latestAttempt?: { attemptNumber: number; eventType: string; nextRetryAt?: string }
}

/** Returns one row for each delivery. */
function deliveryRows(answer: { deliveries: ListedDelivery[]; nextPageToken: string }): string[][] {
  const rows = answer.deliveries.map(({ destination, latestAttempt: attempt, ...delivery }) => [
    delivery.createdAt,
    delivery.deliveryId,
    delivery.status.replace('DELIVERY_STATUS_', '').toLowerCase(),
    `attempt ${attempt?.attemptNumber}`,
    attempt?.nextRetryAt ? `next ${attempt.nextRetryAt}` : '',
    destination ? new URL(destination).host : delivery.subscriptionId,
    attempt?.eventType ?? '',
    delivery.lead ?? '',
  ])
  return pageRows(rows, answer.nextPageToken)
}

export const deliveries: Group = {
  list: command({
    summary: 'List the deliveries of a workspace, newest first',
    flags: {
      workspace,
      subscription: { type: 'string', description: 'only deliveries to this subscription: id or host' },
      lead: { type: 'string', description: 'only deliveries of this lead' },
      status: {
        type: 'string',
        multiple: true,
        description: `${Object.keys(deliveryStatuses).join(', ')}; one that waits for its next attempt is retry_scheduled`,
      },
      since: { type: 'string', description: 'ISO time; only deliveries that were created then or later' },
      until: { type: 'string', description: 'ISO time; only deliveries that were created earlier' },
      limit: { type: 'string', description: '1 to 100; default 50' },
      page: { type: 'string', field: 'pageToken', description: '`nextPageToken` of the previous page' },
    },
    rows: deliveryRows,
    run: async ({ leads }, { workspace, subscription, lead, status = [], since, until, limit, page = '' }) => {
      const answer = await leads.listDeliveries({
        workspaceId: workspace,
        subscriptionId: subscription,
        leadId: lead,
        statuses: status.map((each) => oneOf('status', each, deliveryStatuses)),
        createdSince: since === undefined ? undefined : timeOf('since', since),
        createdUntil: until === undefined ? undefined : timeOf('until', until),
        limit: limit === undefined ? undefined : Number(limit),
        pageToken: page,
      })
      const leadIds = [...new Set(answer.deliveries.map(({ leadId }) => leadId).filter(Boolean))]
      const [subscriptions, found] = await Promise.all([
        allSubscriptions(leads, workspace),
        leadIds.length > 0 ? leads.listLeads({ workspaceId: workspace, leadIds }) : { leads: [] },
      ])
      const destinations = new Map(subscriptions.map((each) => [each.subscriptionId, each.destinationUrl]))
      const titles = new Map(found.leads.map((each) => [each.leadId, leadTitle(each)]))
      return {
        deliveries: answer.deliveries.map((delivery) => ({
          destination: destinations.get(delivery.subscriptionId),
          lead: titles.get(delivery.leadId),
          ...(toJson(DeliverySchema, delivery) as object),
        })),
        nextPageToken: answer.nextPageToken,
      }
    },
  }),
  recover: command({
    summary: 'Schedule failed deliveries of a subscription again; without `--yes`, only count them',
    flags: {
      ...named,
      since: { type: 'string', required: true, description: 'ISO time of the first delivery' },
      until: { type: 'string', description: 'ISO time after the last delivery; default now' },
      status: { type: 'string', multiple: true, description: 'failed, dead_lettered, held; default all' },
      event: { type: 'string', multiple: true, description: 'only deliveries of these events; default all' },
      yes: { type: 'boolean', description: 'schedule them' },
    },
    run: ({ leads }, { subscription, since, until, status = [], event = [], yes = false }) =>
      leads.recoverDeliveries({
        subscriptionId: subscription,
        since: timeOf('since', since),
        until: until === undefined ? undefined : timeOf('until', until),
        statuses: status.map((each) => oneOf('status', each, deliveryStatuses)),
        eventTypes: event,
        preview: !yes,
      }),
  }),
  test: command({
    summary: 'Send a sample to the destination of a subscription or hook',
    flags: { ...named, event: { type: 'string', description: 'the event, one of those that are sent' } },
    run: ({ leads }, { subscription, event: eventType }) =>
      leads.sendTestDelivery({ subscriptionId: subscription, eventType }),
  }),
  retry: command({
    summary: 'Retry a delivery at once',
    flags: { attempt: { type: 'string', required: true, description: 'the id of its latest attempt' } },
    run: ({ leads }, { attempt }) => leads.retryDeliveryAttempt({ attemptId: attempt }),
  }),
}
