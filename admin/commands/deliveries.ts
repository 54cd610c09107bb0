import { toJson } from '@bufbuild/protobuf'
import { DeliverySchema, DeliveryStatusSchema } from '#proto/lead/v1/delivery_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { leadTitle } from '../../contract/lead-title.ts'
import { call, choice, command, type Group, many, must, number, text, time, whether } from '../command.ts'
import { allSubscriptions } from '../names.ts'
import { pageRows } from '../output.ts'
import { namedSubscription as named } from './destinations.ts'
import { page, workspace } from './flags.ts'

const rpc = LeadService.method

const deliveryStatuses = Object.fromEntries(
  DeliveryStatusSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ localName, number }) => [localName.toLowerCase(), number]),
)

const status = choice(deliveryStatuses)

interface ListedDelivery {
  deliveryId: string
  subscriptionId: string
  status: string
  createdAt: string
  /** Name of the destination of a subscription, or its URL. */
  destination?: string
  lead?: string
  latestAttempt?: { attemptNumber: number; eventType: string; nextRetryAt?: string }
}

function deliveryRows(answer: { deliveries: ListedDelivery[]; nextPageToken: string }) {
  const rows = answer.deliveries.map(({ destination, latestAttempt: attempt, ...delivery }) => [
    delivery.createdAt,
    delivery.deliveryId,
    delivery.status.replace('DELIVERY_STATUS_', '').toLowerCase(),
    `attempt ${attempt?.attemptNumber}`,
    attempt?.nextRetryAt ? `next ${attempt.nextRetryAt}` : '',
    destination ? (URL.parse(destination)?.host ?? destination) : delivery.subscriptionId,
    attempt?.eventType ?? '',
    delivery.lead ?? '',
  ])
  return pageRows(rows, answer.nextPageToken)
}

export const deliveries: Group = {
  list: command(
    {
      workspace,
      subscription: text('only deliveries to this subscription: id or host', 'subscriptionId'),
      lead: text('only deliveries of this lead', 'leadId'),
      status: many(
        status(
          `${Object.keys(deliveryStatuses).join(', ')}; one that waits for its next attempt is retry_scheduled`,
          'statuses',
        ),
      ),
      since: time('ISO time; only deliveries that were created then or later', 'createdSince'),
      until: time('ISO time; only deliveries that were created earlier', 'createdUntil'),
      limit: number('1 to 100; default 50'),
      page,
    },
    async ({ leads }, given) => {
      const { workspaceId } = given
      const answer = await leads.listDeliveries(given)
      const leadIds = [...new Set(answer.deliveries.map(({ leadId }) => leadId).filter(Boolean))]
      const [subscriptions, found] = await Promise.all([
        allSubscriptions(leads, workspaceId),
        leadIds.length > 0 ? leads.listLeads({ workspaceId, leadIds }) : { leads: [] },
      ])
      const destinations = new Map(subscriptions.map((each) => [each.subscriptionId, each.name || each.destinationUrl]))
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
    { rows: deliveryRows },
  ),
  recover: command(
    {
      ...named,
      since: must(time('ISO time of the first delivery')),
      until: time('ISO time after the last delivery; default now'),
      status: many(status('failed, dead_lettered, held; default all', 'statuses')),
      event: many(text('only deliveries of these events; default all', 'eventTypes')),
      yes: whether('schedule them'),
    },
    ({ leads }, { workspaceId: _, yes = false, ...given }) => leads.recoverDeliveries({ ...given, preview: !yes }),
  ),
  test: call(rpc.sendTestDelivery, { ...named, event: text('the event, one of those that are sent', 'eventType') }),
  retry: call(rpc.retryDeliveryAttempt, { attempt: must(text('the id of its latest attempt', 'attemptId')) }),
}
