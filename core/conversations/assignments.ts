import type { Core } from '../core.ts'
import { type Scope, ServiceError } from '../errors.ts'
import { type Conversation, queuePlaceOf } from '../log/conversation-model.ts'
import { recordStatus } from '../log/conversation-store.ts'
import { logOf } from '../log/event-log.ts'
import { type Agent, type EventType, operationKeys } from '../log-event.ts'
import { agentIssues, validate } from '../rules.ts'
import { findConversation, hasSiteCapability } from './conversation-access.ts'
import { requestRating } from './ratings.ts'
import { changeState, type StateEvents } from './state-events.ts'

export const assignmentEvents: StateEvents<'assignment'> = {
  field: 'assignment',
  eventOf({ version, agent, previous }) {
    const eventAgent = agent ?? previous
    return {
      type: agent ? 'agent.assigned' : 'agent.unassigned',
      operationKey: operationKeys.assignment(version),
      inputHash: 'assignment',
      ...(eventAgent && { data: { agent: eventAgent } }),
    }
  },
}

/** Changes nothing if the agent is already assigned. Errors: NotFound, ValidationFailed. */
export async function assignAgent(
  core: Core,
  conversationId: string,
  { displayName, avatarUrl }: Agent,
  scope: Scope,
  operator?: string,
): Promise<Conversation> {
  const agent = { displayName, avatarUrl }
  const conversation = await findConversation(core, conversationId, scope)
  validate(...agentIssues(agent))
  return setAgent(core, conversation, agent, operator)
}

/** Removes the assigned agent. Errors: NotFound. */
export async function unassignAgent(core: Core, conversationId: string, scope: Scope): Promise<Conversation> {
  return setAgent(core, await findConversation(core, conversationId, scope), undefined)
}

const setAgent = (core: Core, conversation: Conversation, agent: Agent | undefined, operator?: string) =>
  changeState(core, assignmentEvents, conversation, (current) => {
    const previous = current?.agent
    const isSame = previous?.displayName === agent?.displayName && previous?.avatarUrl === agent?.avatarUrl
    if (isSame && current?.operator === operator) return undefined
    return { agent, operator, previous }
  })

/**
 * Closes a conversation. With `requestsRating`, asks its visitor for a rating, also if it is closed
 * already. The event comes before the update of the document, because the order of events in the log
 * decides whether the conversation is closed. Errors: NotFound, RouteNotAdvertised if no installation of
 * the conversation supports ratings.
 */
export async function closeConversation(
  core: Core,
  conversationId: string,
  scope: Scope,
  requestsRating = false,
): Promise<Conversation> {
  await findConversation(core, conversationId, scope)
  if (requestsRating && !(await hasSiteCapability(core, conversationId, 'rating')))
    throw new ServiceError('RouteNotAdvertised')
  await changeStatus(core, conversationId, 'conversation.closed')
  if (requestsRating) await requestRating(core, conversationId)
  return findConversation(core, conversationId, scope)
}

/** Does nothing if the conversation is open. Errors: NotFound. */
export async function reopenConversation(core: Core, conversationId: string, scope: Scope): Promise<Conversation> {
  await findConversation(core, conversationId, scope)
  await changeStatus(core, conversationId, 'conversation.reopened')
  return findConversation(core, conversationId, scope)
}

async function changeStatus(core: Core, conversationId: string, type: EventType) {
  const { event } = await logOf(core).append({ conversationId, type })
  await recordStatus(core, [{ conversationId, queue: queuePlaceOf(event) }])
}
