import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { FieldIssue } from '../../contract/errors.ts'
import { ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import type { EventDraft } from '../log/event-draft.ts'
import type { EventLog } from '../log/event-log.ts'
import { type Agent, operationKeys } from '../log-event.ts'
import { agentIssues, field, line, messageBody, operationId, text as plainText, validate } from '../rules.ts'
import { createAnnouncedChanges } from './announced-changes.ts'
import type { Assignments } from './assignments.ts'
import type { ConversationAccess } from './conversation-access.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { GrowingMessages, Grown, GrowthPart } from './growing-messages.ts'
import type { GuardedAppends, Operation } from './guarded-appends.ts'
import type { Sent } from './messages.ts'
import { type Conversation, queuePlaceOf } from './model.ts'
import type { Notes } from './notes.ts'

type Scope = string | undefined

interface BotSend {
  conversationId: string
  clientOperationId: string
  body: string
  bot: Agent
  quickReplies: string[]
}

interface HumanRequest {
  conversationId: string
  clientOperationId: string
  bot: Agent
  /** What operators should know. Visitors never see it. */
  summary: string
}

export interface Bots {
  /**
   * Sends a message of a bot. Errors: NotFound if the conversation does not exist, ValidationFailed,
   * IdempotencyConflict, BotStopped, ServiceUnavailable.
   */
  send(send: BotSend, scope: Scope): Promise<Sent>
  /**
   * Adds text to a message that visitors see while it grows. Errors: those of `send`; BotStopped only
   * for a new message.
   */
  append(part: GrowthPart & { bot: Agent }, scope: Scope): Promise<Grown>
  /**
   * Hands a conversation over to the operators and stops the bot. Returns false for duplicate
   * operations. Errors: those of `send`.
   */
  requestHuman(request: HumanRequest, scope: Scope): Promise<boolean>
  /** Stops bots in a conversation. Errors: NotFound if the conversation does not exist. */
  stop(conversationId: string, scope: Scope): Promise<Conversation>
  /** Gives a conversation back to its bot. Errors: NotFound if the conversation does not exist. */
  resume(conversationId: string, scope: Scope): Promise<Conversation>
  /** Appends events that are missing because the process that stopped or resumed bots died. */
  reconcile(): Promise<void>
}

const maxQuickReplies = 5
const maxQuickReplyLength = 80
/** Input of each message that grows, because its calls are compared by their texts. */
const growingHash = 'growing'

/**
 * Messages of bots, and whether bots are stopped in a conversation.
 *
 * A stop is written to the conversation, then to its log, before the call that stops is answered. A
 * message is appended only if the log has had no event since before the conversation was read. So no
 * message of a bot is between the event that stopped it and the event that resumed it.
 */
export function createBots(dependencies: {
  log: Pick<EventLog, 'append' | 'endOf'>
  guardedAppends: GuardedAppends
  store: Pick<ConversationStore, 'change' | 'markAnnounced' | 'unannounced' | 'recordStatus'>
  conversationAccess: Pick<ConversationAccess, 'find' | 'require'>
  growing: Pick<GrowingMessages, 'append' | 'interruptIn'>
  assignments: Pick<Assignments, 'reopen' | 'unassign'>
  notes: Pick<Notes, 'addOfBot'>
  /** Called with each message of a bot. */
  follow: (sent: Sent) => void
  bodyMaxLength: number
  growthPauseMs: number
  now: () => number
}): Bots {
  const { log, guardedAppends, store, conversationAccess, growing, assignments, notes, follow, now } = dependencies
  const { bodyMaxLength, growthPauseMs } = dependencies

  const changes = createAnnouncedChanges({
    field: 'bots',
    eventOf({ version, isStopped, request }) {
      if (!isStopped || !request) {
        const type = isStopped ? 'bot.stopped' : 'bot.resumed'
        return { type, operationKey: operationKeys.botChange(version), inputHash: type }
      }
      const { operationId: id, inputHash, bot } = request
      return { type: 'human.requested', operationKey: operationKeys.humanRequest(id), inputHash, data: { agent: bot } }
    },
    async applied(event) {
      const { conversationId, type } = event
      if (type !== 'bot.resumed') await growing.interruptIn(conversationId)
      if (type === 'human.requested') await store.recordStatus([{ conversationId, queue: queuePlaceOf(event) }])
    },
    store,
    log,
    conversationAccess,
  })

  /** Appends an event, unless bots are stopped. A repeat returns the first event in any case. */
  const appendUnlessStopped = (draft: EventDraft & Operation, scope: Scope) =>
    guardedAppends.append(draft, async () => {
      const end = await log.endOf(draft.conversationId)
      const { bots } = await changes.settled(draft.conversationId, scope)
      return { end, refusal: bots?.isStopped ? ErrorCode.BOT_STOPPED : undefined }
    })

  return {
    async send({ conversationId, ...input }, scope) {
      const { clientOperationId, body, bot, quickReplies } = input
      await conversationAccess.find(conversationId, scope)
      validate(
        field('/clientOperationId', clientOperationId, operationId),
        field('/body', body, messageBody(bodyMaxLength)),
        ...agentIssues(bot, '/bot'),
        ...quickReplyIssues(quickReplies),
      )
      const draft = {
        conversationId,
        type: 'message.received' as const,
        operationKey: operationKeys.botMessage(clientOperationId),
        inputHash: hashInput(input),
        message: {
          messageId: newId('msg'),
          author: { kind: 'bot' as const, ...bot },
          body,
          contentType: 'text' as const,
          state: 'sent' as const,
          ...(quickReplies.length > 0 && { quickReplies }),
        },
      }
      const sent = await appendUnlessStopped(draft, scope)
      follow(sent)
      return sent
    },

    async append({ bot, ...part }, scope) {
      const { conversationId, clientOperationId, offset, text, done, quickReplies } = part
      await conversationAccess.require(conversationId, scope)
      validate(
        field('/clientOperationId', clientOperationId, operationId),
        field('/text', text, plainText(0, bodyMaxLength)),
        ...(offset === 0 ? agentIssues(bot, '/bot') : []),
        ...quickReplyIssues(quickReplies, done ? maxQuickReplies : 0),
      )
      const begin = async () => {
        const sent = await appendUnlessStopped(
          {
            conversationId,
            type: 'message.received',
            operationKey: operationKeys.botMessage(clientOperationId),
            inputHash: growingHash,
            message: {
              messageId: newId('msg'),
              author: { kind: 'bot', ...bot },
              body: text,
              contentType: 'text',
              state: 'sent',
            },
            growth: { state: 'growing', length: [...text].length, until: new Date(now() + growthPauseMs) },
          },
          scope,
        )
        follow(sent)
        return sent
      }
      return growing.append(part, begin)
    },

    async requestHuman({ conversationId, clientOperationId, bot, summary }, scope) {
      const { bots } = await conversationAccess.find(conversationId, scope)
      validate(
        field('/clientOperationId', clientOperationId, operationId),
        field('/summary', summary, messageBody(bodyMaxLength)),
        ...agentIssues(bot, '/bot'),
      )
      const inputHash = hashInput({ summary, bot })
      const operationKey = operationKeys.humanRequest(clientOperationId)
      if (await guardedAppends.eventOf({ conversationId, operationKey, inputHash })) {
        // The first call may have written its event, and then failed before it put the conversation in the queue.
        await changes.settled(conversationId, scope)
        return false
      }
      if (bots?.isStopped && bots.request?.operationId !== clientOperationId)
        throw new ServiceError(ErrorCode.BOT_STOPPED)
      // The request comes last, so that operators find the conversation complete. A bot repeats the
      // call until it is answered, and each step has an effect once.
      await notes.addOfBot({ conversationId, clientOperationId, body: summary, agent: bot }, scope)
      await assignments.reopen(conversationId, scope)
      await assignments.unassign(conversationId, scope)
      const at = new Date(now())
      let isNew = true
      await changes.change(
        conversationId,
        scope,
        (current) => {
          isNew = current?.request?.operationId !== clientOperationId
          if (!isNew) return undefined
          if (current?.isStopped) throw new ServiceError(ErrorCode.BOT_STOPPED)
          return { isStopped: true, request: { operationId: clientOperationId, inputHash, bot, at } }
        },
        at,
      )
      return isNew
    },

    stop: (conversationId, scope) =>
      changes.change(conversationId, scope, (current) => (current?.isStopped ? undefined : { isStopped: true })),

    resume: (conversationId, scope) =>
      changes.change(conversationId, scope, (current) => (current?.isStopped ? { isStopped: false } : undefined)),

    reconcile: changes.reconcile,
  }
}

function quickReplyIssues(texts: string[], max = maxQuickReplies): (FieldIssue | undefined)[] {
  const isBlank = (text: string) => text.trim() === ''
  return [
    texts.length > max ? { path: '/quickReplies', rule: 'maxItems' } : undefined,
    new Set(texts).size < texts.length ? { path: '/quickReplies', rule: 'uniqueItems' } : undefined,
    ...texts.map((text, index) =>
      field(
        `/quickReplies/${index}`,
        text,
        (value) => line(1, maxQuickReplyLength)(value) ?? (isBlank(value) ? 'pattern' : undefined),
      ),
    ),
  ]
}
