import {
  AttemptPhase,
  type DeliveryAttempt,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'
import { DisabledReason, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { waitOf } from '../../contract/delivery-waits.ts'
import { timeText } from '../output.ts'
import type { Services } from '../services.ts'

export async function* explainDelivery(services: Services, deliveryId: string): AsyncIterable<string> {
  const { attempts } = await services.leads.listDeliveryAttempts({ deliveryId })
  const latest = attempts.at(-1)
  if (latest === undefined) return yield `Delivery ${deliveryId} has no attempts.`
  const { subscriptionId, eventType, leadId } = latest
  const about = leadId === '' ? '' : ` of lead ${leadId}`
  yield `Delivery ${deliveryId} sends ${eventType || 'an event'}${about} to ${subscriptionId}. It began at ${timeText(attempts[0]?.createdAt)}.`
  for (const attempt of attempts) if (attempt.responseClass !== 0) yield resultOf(attempt)
  yield outcomeOf(latest)
  yield* destinationFacts(services, subscriptionId)
}

function resultOf(attempt: DeliveryAttempt) {
  const { attemptNumber, responseClass, responseStatus, failureReason, failurePhase, durationMs } = attempt
  const { updatedAt, correlationId, responseText } = attempt
  const facts = [
    ResponseClass[responseClass]?.toLowerCase(),
    responseStatus !== undefined && `status ${responseStatus}`,
    failureReason !== FailureReason.UNSPECIFIED && FailureReason[failureReason]?.toLowerCase(),
    failurePhase !== AttemptPhase.UNSPECIFIED && `phase ${AttemptPhase[failurePhase]?.toLowerCase()}`,
    durationMs !== undefined && `${durationMs} ms`,
  ].filter(Boolean)
  const answer = responseText && ` The destination answered: ${responseText}`
  return `Attempt ${attemptNumber} ended at ${timeText(updatedAt)}: ${[...new Set(facts)].join(', ')}; correlation id ${correlationId}.${answer}`
}

function outcomeOf({ attemptId, status, responseClass, nextRetryAt, updatedAt }: DeliveryAttempt) {
  const retry = `Mend the destination, then run \`deliveries retry --attempt ${attemptId}\`.`
  switch (waitOf(status, Number(nextRetryAt?.seconds) * 1000, Date.now()) ?? status) {
    case 'worker':
      return `It waits for a worker since ${timeText(nextRetryAt ?? updatedAt)}. If it waits for long, its destination may be slow: a worker sends only some requests to a destination at once, and service_core_longest_queues shows which destinations hold the queue. Or no worker is there: look at their /readyz.`
    case 'answer':
      return `A worker has claimed it at ${timeText(updatedAt)}. If the worker died, another one continues when its lease expires.`
    case 'retry':
      return `The last attempt failed. The next one is due at ${timeText(nextRetryAt)}.`
    case 'destination':
      return `It is held, because its destination is disabled. It continues when the destination is enabled.`
    case DeliveryStatus.ACCEPTED:
      return `The destination accepted it at ${timeText(updatedAt)}.`
    case DeliveryStatus.FAILED:
      return responseClass === ResponseClass.SUPPRESSED
        ? 'Nothing was sent, because the person is on the suppression list of the workspace.'
        : `It failed for good and is not retried. ${retry}`
    default:
      return `Every attempt of the schedule failed. ${retry}`
  }
}

async function* destinationFacts({ leads, hooks }: Services, id: string) {
  const isHook = id.startsWith('hook_')
  const destination = isHook
    ? (await hooks.getHook({ hookId: id })).hook
    : (await leads.getSubscription({ subscriptionId: id })).subscription
  if (!destination) return
  const { name, destinationUrl, status, disabledReason, failingSince, droppedHeaders, maxPerSecond } = destination
  yield `Destination ${id}${name && ` (${name})`} is at ${URL.parse(destinationUrl)?.host ?? 'an unknown host'}.`
  if (status === SubscriptionStatus.DISABLED)
    yield `Destination ${id} is disabled (${DisabledReason[disabledReason]?.toLowerCase()}). Enable it with \`${isHook ? 'hooks update --hook' : 'subscriptions update --subscription'} ${id} --status enabled\`.`
  if (failingSince) yield `Every attempt to destination ${id} has failed since ${timeText(failingSince)}.`
  if (droppedHeaders.length > 0)
    yield `Headers were removed when the destination moved, and are not set again: ${droppedHeaders.join(', ')}.`
  if (maxPerSecond !== undefined) yield `The destination gets at most ${maxPerSecond} requests a second.`
}
