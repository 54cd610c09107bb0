import {
  AttemptPhase,
  type DeliveryAttempt,
  DeliveryStatus,
  FailureReason,
  ResponseClass,
} from '#proto/lead/v1/delivery_pb.js'
import { DisabledReason, SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { ConsentDecision, type Session } from '#proto/session/v1/session_pb.js'
import { ConnectionStatus, type Installation } from '#proto/workspace/v1/workspace_pb.js'
import { waitOf } from '../../contract/delivery-waits.ts'
import { isOriginAllowed } from '../../contract/origins.ts'
import { timeText } from '../output.ts'
import type { Services } from '../services.ts'

export async function* explainSession(services: Services, sessionId: string): AsyncIterable<string> {
  const { sessions, workspaces } = services
  const { session } = await sessions.getSession({ sessionId })
  if (!session) return
  const { workspaceId, connectionId, publicSiteKey, conversationId, origin, createdAt } = session
  yield `Session ${sessionId} began at ${timeText(createdAt)} on ${origin}. It writes to conversation ${conversationId}.`
  yield stateOf(session)
  yield* await changesOf(services, workspaceId, sessionId)
  yield await presenceOf(services, session)
  const [{ connections }, { installations }] = await Promise.all([
    workspaces.listConnections({ workspaceId }),
    workspaces.listInstallations({ workspaceId }),
  ])
  const connection = connections.find((each) => each.connectionId === connectionId)
  const installation = installations.find((each) => each.publicSiteKey === publicSiteKey)
  const reasons = [...bansOf(session)]
  if (connection?.status === ConnectionStatus.DISABLED)
    reasons.push(
      `Connection ${connectionId} is disabled. Enable it with \`connections status\`.`,
      ...(await changesOf(services, workspaceId, connectionId)),
    )
  if (installation) reasons.push(...refusalsOf(session, installation))
  else reasons.push(`Installation ${publicSiteKey} does not exist any more.`)
  yield* reasons
  if (session.state === 'active' && reasons.length === 0) {
    yield `Nothing that is stored refuses this session. Search the gateways' logs for ${sessionId}: the line "event stream ended" has the reason. If there is no line, run \`doctor --gateway URL --site-key ${publicSiteKey} --origin ${origin}\` with the public URL of the gateways.`
  }
}

const shownChanges = 3

async function changesOf({ workspaces }: Services, workspaceId: string, target: string) {
  const { changes } = await workspaces.listPolicyChanges({ workspaceId, target, limit: shownChanges })
  return changes.map(({ action, actor, at }) => `${actor} called ${action} for ${target} at ${timeText(at)}.`)
}

async function presenceOf({ messaging }: Services, { conversationId }: Session) {
  const { conversation } = await messaging.getConversation({ conversationId })
  if (conversation?.presence === Presence.HERE)
    return 'A page of its conversation has an open stream now, and shows the chat.'
  if (conversation?.presence === Presence.AWAY)
    return 'A page of its conversation has an open stream now, but does not show the chat.'
  return 'No page of its conversation has an open stream now.'
}

function stateOf({ state, expiresAt }: Session) {
  const ended = 'Its grant is refused. The widget offers the visitor a new chat.'
  switch (state) {
    case 'active':
      return `It is active and expires at ${timeText(expiresAt)} unless the page renews it.`
    case 'expired':
      return `It expired at ${timeText(expiresAt)}, because the page did not renew it or its longest lifetime was over. ${ended}`
    case 'closed':
      return `It was closed: the visitor signed in or out, closed it, or its connection was disabled. ${ended}`
    case 'revoked':
      return `An operator or a service revoked it. ${ended}`
    default:
      return `It ended because the visitor was banned. A new session is needed also after the ban is lifted.`
  }
}

function* bansOf({ sessionId, visitorBanned, addressBannedUntil }: Session) {
  const unban = `Lift the ban with \`visitors unban --session ${sessionId}\`.`
  if (visitorBanned) yield `The visitor is banned, so new sessions are refused. ${unban}`
  if (addressBannedUntil)
    yield `The visitor's network address is banned until ${timeText(addressBannedUntil)}. ${unban}`
}

function* refusalsOf({ origin, consent }: Session, installation: Installation) {
  const { publicSiteKey, enabled, origins, consent: policy } = installation
  const agreed = consent?.decision === ConsentDecision.GRANTED && consent.policyVersion === policy?.policyVersion
  if (!enabled) yield `Installation ${publicSiteKey} is disabled.`
  if (!isOriginAllowed(origin, origins))
    yield `Installation ${publicSiteKey} allows ${origins.join(', ') || 'no origin'} only. Add ${origin} to it.`
  if (policy?.required && !agreed)
    yield `Messages are refused until the visitor agrees to version ${policy.policyVersion} of the consent policy. ${consent ? `The latest decision is about version ${consent.policyVersion}, at ${timeText(consent.decidedAt)}.` : 'There is no decision yet.'}`
}

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

function outcomeOf(latest: DeliveryAttempt) {
  const { attemptId, status, responseClass, responseStatus, nextRetryAt, updatedAt } = latest
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
      if (responseClass === ResponseClass.REJECTED_PAYLOAD && responseStatus === undefined)
        return 'Nothing was sent, because its body would be larger than 64 KiB. Send fewer fields of the leads to this destination.'
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

/** Says where a message is, and where to look if it was slow. Changes no state of the message. */
export async function* explainMessage(
  services: Services,
  conversationId: string,
  messageId: string,
): AsyncIterable<string> {
  const message = await findMessage(services, conversationId, messageId)
  if (!message) throw new Error(`conversation ${conversationId} has no message ${messageId}`)
  const { author, sessionId, sequence, createdAt, redactedAt, correlationId } = message
  const isVisitors = author?.kind === 'visitor'
  yield `Message ${messageId} of ${isVisitors ? `the visitor, session ${sessionId},` : `the ${author?.kind}`} has sequence ${sequence}. A core began to write it at ${timeText(createdAt)}. Its sender got the answer after the write.`
  if (redactedAt) yield `It was withdrawn at ${timeText(redactedAt)}.`
  yield `Its state is ${message.state}. ${isVisitors ? visitorsStates : othersStates}`
  yield correlationId === undefined
    ? 'It has no correlation id, because its sender sent none.'
    : `Search the logs for its correlation id, ${correlationId}. The gateway's line "request" says how long the request took. If a core has a line "slow send" with this id, the time went in the core, and nearly always for the database: look for "the database does not answer" and at service_core_database_command_duration_seconds. Otherwise it went before the core. A repeat of the request has another id.`
}

const visitorsStates = '"queued" means that no operator has loaded it, "sent" that one has.'
const othersStates =
  '"sent" means that no page has confirmed it, "delivered" that one has it, "read" that the visitor saw it.'

async function findMessage({ messaging }: Services, conversationId: string, messageId: string) {
  for (let afterSequence = 0, hasMore = true; hasMore; ) {
    const page = await messaging.listMessages({ conversationId, afterSequence, limit: 100, peek: true })
    const found = page.messages.find((message) => message.messageId === messageId)
    if (found) return found
    afterSequence = page.messages.at(-1)?.sequence ?? afterSequence
    hasMore = page.hasMore
  }
  return undefined
}
