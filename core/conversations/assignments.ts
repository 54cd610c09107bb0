import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { EventLog } from '../log/event-log.ts'
import { type Agent, operationKeys } from '../log-event.ts'
import { agentIssues, validate } from '../rules.ts'
import { createAnnouncedChanges } from './announced-changes.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { ConversationStore } from './conversation-store.ts'
import { type Conversation, queuePlaceOf } from './model.ts'
import type { Ratings } from './ratings.ts'
import type { HasSiteCapability } from './site-capabilities.ts'

type Scope = string | undefined

export interface Assignments {
  /**
   * Assigns an agent. Changes nothing if the agent is already assigned. Errors: NotFound if the
   * conversation does not exist, ValidationFailed.
   */
  assign(conversationId: string, agent: Agent, scope: Scope, operator?: string): Promise<Conversation>
  /** Removes the assigned agent. Errors: NotFound if the conversation does not exist. */
  unassign(conversationId: string, scope: Scope): Promise<Conversation>
  /**
   * Closes a conversation. With `requestRating`, asks its visitor for a rating, also if it is closed
   * already. Errors: NotFound if the conversation does not exist, RouteNotAdvertised if no
   * installation of the conversation supports ratings.
   */
  close(conversationId: string, scope: Scope, requestRating?: boolean): Promise<Conversation>
  /**
   * Reopens a conversation. Does nothing if it is open. Errors: NotFound if the conversation does
   * not exist.
   */
  reopen(conversationId: string, scope: Scope): Promise<Conversation>
  /**
   * Appends assignment events that are missing because the process that stored the assignment died.
   */
  reconcile(): Promise<void>
}

/**
 * Assigns and closes conversations.
 *
 * To close a conversation, the event is appended before the document is updated. The order of
 * events in the log decides whether the conversation is closed.
 */
export function createAssignments(dependencies: {
  store: ConversationStore
  log: EventLog
  conversationAccess: ConversationAccess
  ratings: Pick<Ratings, 'request'>
  hasSiteCapability: HasSiteCapability
}): Assignments {
  const { store, log, conversationAccess, ratings, hasSiteCapability } = dependencies

  const changes = createAnnouncedChanges({
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
    store,
    log,
    conversationAccess,
  })

  const change = (conversationId: string, agent: Agent | undefined, scope: Scope, operator?: string) =>
    changes.change(conversationId, scope, (current) =>
      isSame(current?.agent, agent) && current?.operator === operator
        ? undefined
        : { agent, ...(operator !== undefined && { operator }), previous: current?.agent },
    )

  return {
    async assign(conversationId, { displayName, avatarUrl }, scope, operator) {
      const agent = { displayName, avatarUrl }
      await conversationAccess.find(conversationId, scope)
      validate(...agentIssues(agent))
      return change(conversationId, agent, scope, operator)
    },

    unassign: (conversationId, scope) => change(conversationId, undefined, scope),

    async close(conversationId, scope, requestRating = false) {
      await conversationAccess.find(conversationId, scope)
      if (requestRating && !(await hasSiteCapability(conversationId, 'rating')))
        throw new ServiceError(ErrorCode.ROUTE_NOT_ADVERTISED)
      const { event } = await log.append({ conversationId, type: 'conversation.closed' })
      await store.recordStatus([{ conversationId, queue: queuePlaceOf(event) }])
      if (requestRating) await ratings.request(conversationId)
      return conversationAccess.find(conversationId, scope)
    },

    async reopen(conversationId, scope) {
      const { status, closedSequence } = await conversationAccess.find(conversationId, scope)
      if (status === 'closed') {
        const { event } = await log.append({
          conversationId,
          type: 'conversation.reopened',
          operationKey: operationKeys.reopening(closedSequence!),
          inputHash: 'reopening',
        })
        await store.recordStatus([{ conversationId, queue: queuePlaceOf(event) }])
      }
      return conversationAccess.find(conversationId, scope)
    },

    reconcile: changes.reconcile,
  }
}

function isSame(one: Agent | undefined, other: Agent | undefined): boolean {
  return one?.displayName === other?.displayName && one?.avatarUrl === other?.avatarUrl
}
