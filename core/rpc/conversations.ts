import { timestampDate } from '@bufbuild/protobuf/wkt'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import {
  ConversationStatus,
  type ListConversationsRequest,
  type MessagingService,
  TypingState as TypingStateMessage,
} from '#proto/messaging/v1/messaging_pb.js'
import { assignAgent, closeConversation, reopenConversation, unassignAgent } from '../conversations/assignments.ts'
import { resumeBots, stopBots } from '../conversations/bots.ts'
import {
  findConversation,
  hasSiteCapability,
  listConversationEvents,
  summarizeConversations,
} from '../conversations/conversation-access.ts'
import { countQueues, inboxOf, listConversations, pageTokenAfter } from '../conversations/inbox.ts'
import { recordReceipt, updateMessageStates } from '../conversations/message-states.ts'
import { type Assignee, tagOf } from '../conversations/model.ts'
import { addNote, listNotes } from '../conversations/notes.ts'
import { searchTexts } from '../conversations/search.ts'
import { addTag, listTags, removeTag } from '../conversations/tags.ts'
import { setTypingOfAgent, setTypingOfVisitor, type TypingState } from '../conversations/typing.ts'
import { visitorPresenceOf } from '../conversations/visitor-presence.ts'
import type { Core } from '../core.ts'
import { redactMessage } from '../deliveries/redactions.ts'
import { invalid } from '../errors.ts'
import { findLeads } from '../leads/leads.ts'
import type { Conversation } from '../log/conversation-model.ts'
import { stopMails } from '../notices/answer-mails.ts'
import { operatorsIn } from '../operators/console-sessions.ts'
import type { SignedInOperator } from '../operators/model.ts'
import { countFitting } from '../page-token.ts'
import { facesOf, setFace } from '../pictures/pictures.ts'
import type { SourceKind } from '../search/search-entry-store.ts'
import { callerOf, callerWorkspace, requiredWorkspace, workspaceOf } from '../transport/caller.ts'
import { deleteSavedReply, listSavedReplies, saveReply } from '../workspaces/saved-replies.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import {
  fromAgent,
  presenceStates,
  toConversation,
  toInboxEvent,
  toMessage,
  toNote,
  toSearchResult,
} from './messaging-values.ts'
import { emptyAfter, fromCredentials, nameOf, ofVisitor } from './proto-values.ts'
import { watchConversations } from './watch-conversations.ts'

/** The methods of `MessagingService` for conversations and typing. */
export function conversationMethods(core: Core) {
  const changed = async (conversation: Promise<Conversation>) => ({ conversation: toConversation(await conversation) })
  return {
    async listConversations(
      { limit, pageToken, countFor: name, countForOperator: operator, tag, ...request },
      context,
    ) {
      const countFor = operator !== undefined ? { operator } : name !== undefined ? { name } : undefined
      const query = {
        workspaceId: (countFor === undefined ? workspaceOf : requiredWorkspace)(context, request.workspaceId),
        status: request.unanswered ? 'open' : nameOf(ConversationStatus, request.status),
        assignee: fromAssignee(request.assignee),
        unanswered: request.unanswered,
        tag: tag === undefined ? undefined : tagOf(tag),
      } as const
      const [{ conversations, nextPageToken }, counts] = await Promise.all([
        listConversations(core, { ...query, limit, pageToken }),
        countFor === undefined ? undefined : countQueues(core, query.workspaceId!, countFor),
      ])
      const summaries = await summarizeConversations(core, conversations, shown(context))
      const fitting = countFitting(summaries)
      return {
        conversations: conversations.slice(0, fitting).map((each, index) => toConversation(each, summaries[index])),
        nextPageToken:
          fitting < conversations.length ? pageTokenAfter(conversations[fitting - 1]!, query) : nextPageToken,
        counts,
      }
    },

    async searchConversations({ workspaceId, query, limit, pageToken, status, assignee, from, to }, context) {
      const { results, nextPageToken } = await searchTexts(core, {
        workspaceId: requiredWorkspace(context, workspaceId),
        kinds: readableKinds(context),
        query,
        limit,
        pageToken,
        status: nameOf(ConversationStatus, status),
        assignee: fromAssignee(assignee),
        from: from && timestampDate(from),
        to: to && timestampDate(to),
      })
      const conversations = results.map(({ conversation }) => conversation)
      const summaries = await summarizeConversations(core, conversations, shown(context))
      return { results: results.map((result, index) => toSearchResult(result, summaries[index])), nextPageToken }
    },

    async getConversation({ conversationId }, context) {
      // The response must include the messages that this process has accepted.
      await inboxOf(core).noted()
      const conversation = await findConversation(core, conversationId, callerWorkspace(context))
      const [[summary], canRequestRating] = await Promise.all([
        summarizeConversations(core, [conversation], shown(context)),
        hasSiteCapability(core, conversationId, 'rating'),
      ])
      const presence = presenceStates[visitorPresenceOf(core).of(conversationId)]
      return { conversation: { ...toConversation(conversation, summary), canRequestRating, presence } }
    },

    async listConversationEvents({ conversationId, ...range }, context) {
      const { events, hasMore } = await listConversationEvents(core, conversationId, range, callerOf(context))
      const mayRead = callerOf(context).scopes.has('leads:read')
      const leads = await findLeads(core, mayRead ? events.flatMap(({ data }) => data?.leadId ?? []) : [])
      const fields = new Map(leads.map((lead) => [lead.leadId, lead.fields]))
      const shownEvents = events.map(toInboxEvent)
      for (const { form } of shownEvents) if (form) form.fields = fields.get(form.leadId!)
      return { events: shownEvents, hasMore }
    },

    setTyping({ conversationId, state, agent }, context) {
      const request = { conversationId, state: fromTypingState(state), agent: fromAgent(agent) }
      return emptyAfter(setTypingOfAgent(core, request, callerWorkspace(context)))
    },

    setVisitorTyping: ({ credentials, state }) =>
      emptyAfter(setTypingOfVisitor(core, fromCredentials(credentials), fromTypingState(state))),

    reportReceipt: (request) => emptyAfter(recordReceipt(core, ofVisitor(request))),

    stopMails: ({ token }) => emptyAfter(stopMails(core, token)),

    updateMessageState: (request, context) => updateMessageStates(core, request, callerWorkspace(context)),

    async assignAgent({ conversationId, agent, operatorId }, context) {
      const scope = callerWorkspace(context)
      const { workspaceId } = await findConversation(core, conversationId, scope)
      const operators = await operatorsIn(core, workspaceId)
      const isMeant = (one: SignedInOperator) =>
        operatorId === undefined ? one.displayName === agent?.displayName : one.operator === operatorId
      const [found, ...others] = operators.filter(isMeant)
      if (operatorId !== undefined && !found && operatorId !== callerOf(context).subject)
        throw invalid('/operatorId', 'unknown')
      const named = fromAgent(agent) ?? {
        displayName: found?.displayName ?? '',
        avatarUrl: found && (await facesOf(core, workspaceId, [found.operator])).get(found.operator),
      }
      const operator = operatorId ?? (others.length === 0 ? found?.operator : undefined)
      return changed(assignAgent(core, conversationId, named, scope, operator))
    },

    unassignAgent: ({ conversationId }, context) =>
      changed(unassignAgent(core, conversationId, callerWorkspace(context))),

    async listAgents({ workspaceId }, context) {
      const workspace = requiredWorkspace(context, workspaceId)
      const found = await operatorsIn(core, workspace)
      const ids = found.map(({ operator }) => operator)
      const faces = await facesOf(core, workspace, ids)
      const toAgent = ({ displayName, operator: operatorId }: SignedInOperator) => ({
        displayName,
        operatorId,
        avatarUrl: faces.get(operatorId),
      })
      return { agents: found.map(toAgent) }
    },

    async setAgentPicture({ workspaceId: named, image, gatewayOrigin }, context) {
      const { workspaceId } = await findWorkspace(core, requiredWorkspace(context, named))
      const picture = { workspaceId, image, gatewayOrigin }
      return { avatarUrl: await setFace(core, callerOf(context).subject, picture) }
    },

    async listSavedReplies({ workspaceId }, context) {
      return { replies: await listSavedReplies(core, requiredWorkspace(context, workspaceId)) }
    },

    async saveReply({ workspaceId, shortcut, body }, context) {
      return { reply: await saveReply(core, requiredWorkspace(context, workspaceId), { shortcut, body }) }
    },

    deleteSavedReply: ({ workspaceId, shortcut }, context) =>
      emptyAfter(deleteSavedReply(core, requiredWorkspace(context, workspaceId), shortcut)),

    async redactMessage({ conversationId, sequence }, context) {
      const { workspaceId, subject, scopes } = callerOf(context)
      const caller = { workspaceId, subject, anyAuthor: scopes.has('messages:redact') }
      return { message: toMessage(await redactMessage(core, { conversationId, sequence }, caller)) }
    },

    closeConversation: ({ conversationId, requestRating }, context) =>
      changed(closeConversation(core, conversationId, callerWorkspace(context), requestRating)),

    reopenConversation: ({ conversationId }, context) =>
      changed(reopenConversation(core, conversationId, callerWorkspace(context))),

    stopBot: ({ conversationId }, context) => changed(stopBots(core, conversationId, callerWorkspace(context))),

    resumeBot: ({ conversationId }, context) => changed(resumeBots(core, conversationId, callerWorkspace(context))),

    addTag: ({ conversationId, tag }, context) => changed(addTag(core, conversationId, tag, callerWorkspace(context))),

    removeTag: ({ conversationId, tag }, context) =>
      changed(removeTag(core, conversationId, tag, callerWorkspace(context))),

    async listTags({ workspaceId }, context) {
      return { tags: await listTags(core, requiredWorkspace(context, workspaceId)) }
    },

    async addNote({ conversationId, clientOperationId, body, agent }, context) {
      const note = { conversationId, clientOperationId, body, agent: fromAgent(agent) ?? { displayName: '' } }
      return { note: toNote(await addNote(core, note, callerWorkspace(context))) }
    },

    async listNotes({ conversationId }, context) {
      return { notes: (await listNotes(core, conversationId, callerWorkspace(context))).map(toNote) }
    },

    watchConversations({ workspaceId }, context) {
      const caller = { ...callerOf(context), workspaceId: workspaceOf(context, workspaceId) }
      return watchConversations(core, caller, context.signal)
    },
  } satisfies Partial<ServiceImpl<typeof MessagingService>>
}

/** Contact data belongs to leads, so it needs their scope. */
const shown = (context: HandlerContext) => ({ contacts: callerOf(context).scopes.has('leads:read') })

function readableKinds(context: HandlerContext): SourceKind[] {
  const { scopes } = callerOf(context)
  const visitors: SourceKind[] = scopes.has('sessions:read') ? ['visitor'] : []
  const leads: SourceKind[] = scopes.has('leads:read') ? ['lead'] : []
  return ['message', 'note', ...visitors, ...leads]
}

function fromAssignee({ case: name, value }: ListConversationsRequest['assignee']): Assignee | undefined {
  if (name === 'agentName') return { name: value }
  if (name === 'operatorId') return { operator: value }
  if (name === undefined) return undefined
  if (!value) throw invalid('/unassigned', 'const')
  return null
}

export function fromTypingState(state: TypingStateMessage): TypingState {
  if (state === TypingStateMessage.STARTED) return 'started'
  if (state === TypingStateMessage.STOPPED) return 'stopped'
  throw invalid('/state', 'enum')
}
