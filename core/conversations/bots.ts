/**
 * Messages of bots, and whether bots are stopped in a conversation.
 *
 * A stop is written to the conversation, then to its log, before the call that stops is answered. A
 * message is appended only if the log has had no event since before the conversation was read. So no
 * message of a bot is between the event that stopped it and the event that resumed it.
 */

import type { SendBotMessageRequest } from '#proto/bot/v1/bot_pb.js'
import personRequests from '../../contract/person-requests.json' with { type: 'json' }
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { type Core, dateOf } from '../core.ts'
import { type Scope, ServiceError } from '../errors.ts'
import { hashInput } from '../idempotency/idempotency.ts'
import { newId } from '../ids.ts'
import { queuePlaceOf } from '../log/conversation-model.ts'
import { recordStatus } from '../log/conversation-store.ts'
import { type Appended, type EventDraft, logOf } from '../log/event-log.ts'
import { eventsOf } from '../log/event-store.ts'
import { type Agent, type LogEvent, operationKeys } from '../log-event.ts'
import {
  agentIssues,
  field,
  messageBody,
  operationId,
  text as plainText,
  quickReplyIssues,
  validate,
} from '../rules.ts'
import { unassignAgent } from './assignments.ts'
import { findConversation, requireConversation } from './conversation-access.ts'
import { appendGrowth, type GrowthPart, interruptGrowthIn } from './growing-messages.ts'
import { appendGuarded, eventOfOperation, type Operation } from './guarded-appends.ts'
import { followMessage } from './messages.ts'
import { botAuthorOf } from './model.ts'
import { addNoteOfBot } from './notes.ts'
import { announceState, changeState, type StateEvents } from './state-events.ts'

type BotSend = Omit<ProtoFields<SendBotMessageRequest>, 'bot'> & { bot: Agent }

/** Input of each message that grows, because its calls are compared by their texts. */
const growingHash = 'growing'

export const botEvents: StateEvents<'bots'> = {
  field: 'bots',
  eventOf({ version, isStopped, request }) {
    if (!isStopped || !request) {
      const type = isStopped ? 'bot.stopped' : 'bot.resumed'
      return { type, operationKey: operationKeys.botChange(version), inputHash: type }
    }
    const { operationId: id, inputHash, bot } = request
    return {
      type: 'human.requested',
      operationKey: operationKeys.humanRequest(id),
      inputHash,
      ...(bot && { data: { agent: bot } }),
    }
  },
  async applied(core, event) {
    const { conversationId, type } = event
    if (type !== 'bot.resumed') await interruptGrowthIn(core, conversationId)
    if (type === 'human.requested') await recordStatus(core, [{ conversationId, queue: queuePlaceOf(event) }])
  },
}

/** Errors: NotFound, ValidationFailed, IdempotencyConflict, BotStopped, ServiceUnavailable. */
export async function sendAsBot(core: Core, { conversationId, ...input }: BotSend, scope: Scope): Promise<Appended> {
  const { clientOperationId, body, bot, quickReplies } = input
  await findConversation(core, conversationId, scope)
  validate(
    field('/clientOperationId', clientOperationId, operationId),
    field('/body', body, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)),
    ...agentIssues(bot, '/bot'),
    ...quickReplyIssues('/quickReplies', quickReplies),
  )
  const message = { ...messageOf(bot, body), ...(quickReplies.length > 0 && { quickReplies }) }
  const inputHash = hashInput(input)
  return sendUnlessStopped(core, { conversationId, clientOperationId, inputHash, message }, scope)
}

/**
 * Adds text to a message that visitors see while it grows. Errors: those of `sendAsBot`; BotStopped only
 * for a new message.
 */
export async function appendAsBot(core: Core, { bot, ...part }: GrowthPart & { bot: Agent }, scope: Scope) {
  const { conversationId, clientOperationId, offset, text, done, quickReplies } = part
  await requireConversation(core, conversationId, scope)
  validate(
    field('/clientOperationId', clientOperationId, operationId),
    field('/text', text, plainText(0, core.config.MESSAGE_BODY_MAX_LENGTH)),
    ...(offset === 0 ? agentIssues(bot, '/bot') : []),
    ...quickReplyIssues('/quickReplies', quickReplies, done ? undefined : 0),
  )
  return appendGrowth(core, part, () => {
    const until = dateOf(core, core.config.ANSWER_PAUSE_SECONDS * 1000)
    const growth = { state: 'growing' as const, length: [...text].length, until }
    const content = { message: messageOf(bot, text), growth }
    return sendUnlessStopped(core, { conversationId, clientOperationId, inputHash: growingHash, ...content }, scope)
  })
}

const messageOf = (bot: Agent, body: string) => ({
  messageId: newId('msg'),
  author: { kind: 'bot' as const, ...bot },
  body,
  contentType: 'text' as const,
  state: 'sent' as const,
})

/** A repeat returns the first event, also if bots are stopped now. */
async function sendUnlessStopped(
  core: Core,
  {
    clientOperationId,
    ...content
  }: Omit<Operation, 'operationKey'> & Pick<EventDraft, 'message' | 'growth'> & { clientOperationId: string },
  scope: Scope,
) {
  const { conversationId } = content
  const operationKey = operationKeys.botMessage(clientOperationId)
  const sent = await appendGuarded(core, { ...content, type: 'message.received', operationKey }, async () => {
    const end = await logOf(core).endOf(conversationId)
    const conversation = await findConversation(core, conversationId, scope)
    await announceState(core, botEvents, conversation)
    return { end, refusal: conversation.bots?.isStopped ? 'BotStopped' : undefined }
  })
  followMessage(core, sent)
  return sent
}

/**
 * Hands a conversation over to the operators and stops the bot. Without `bot`, the visitor asks. Visitors
 * never see the `summary`. Returns false for duplicate operations. Errors: those of `sendAsBot`.
 */
export async function requestHuman(
  core: Core,
  request: { conversationId: string; clientOperationId: string; bot?: Agent; summary?: string },
  scope: Scope,
): Promise<boolean> {
  const { conversationId, clientOperationId, bot, summary = '' } = request
  const { bots } = await findConversation(core, conversationId, scope)
  if (bot)
    validate(
      field('/clientOperationId', clientOperationId, operationId),
      field('/summary', summary, messageBody(core.config.MESSAGE_BODY_MAX_LENGTH)),
      ...agentIssues(bot, '/bot'),
    )
  const inputHash = hashInput({ summary, bot })
  const operationKey = operationKeys.humanRequest(clientOperationId)
  if (await eventOfOperation(core, { conversationId, operationKey, inputHash })) {
    // The first call may have failed after its event, before it put the conversation in the queue.
    await announceState(core, botEvents, await findConversation(core, conversationId, scope))
    return false
  }
  if (bots?.isStopped && bots.request?.operationId !== clientOperationId) throw new ServiceError('BotStopped')
  // The request comes last, so that operators find the conversation complete. A bot repeats the
  // call until it is answered, and each step has an effect once.
  if (bot) await addNoteOfBot(core, { conversationId, clientOperationId, body: summary, agent: bot }, scope)
  const conversation = await unassignAgent(core, conversationId, scope)
  const at = dateOf(core)
  let isNew = true
  await changeState(
    core,
    botEvents,
    conversation,
    (current) => {
      isNew = current?.request?.operationId !== clientOperationId
      if (!isNew) return undefined
      if (current?.isStopped) throw new ServiceError('BotStopped')
      return { isStopped: true, request: { operationId: clientOperationId, inputHash, at, bot } }
    },
    at,
  )
  return isNew
}

/** Texts with which a visitor asks for a person. The widget has a button for the one of its language. */
const requestTexts = new Set(Object.values(personRequests))

/** Hands the conversation over if this message of its visitor asks for a person, after an answer of a bot. */
export async function handOverIfAsked(core: Core, { conversationId, sequence, message }: LogEvent) {
  if (!message || !requestTexts.has(message.body)) return
  const { messages } = await eventsOf(core).historyPage({ conversationId, before: sequence, limit: 20 })
  if (!messages.some(botAuthorOf) && !(await findConversation(core, conversationId, undefined)).botAuthor) return
  // No bot can choose an id with a space.
  const clientOperationId = `visitor ${message.messageId}`
  await requestHuman(core, { conversationId, clientOperationId }, undefined).catch((error) => {
    if (error.code !== 'BotStopped') throw error
  })
}

/** Errors: NotFound. */
export const stopBots = (core: Core, conversationId: string, scope: Scope) =>
  setStopped(core, conversationId, scope, true)

/** Gives a conversation back to its bot. Errors: NotFound. */
export const resumeBots = (core: Core, conversationId: string, scope: Scope) =>
  setStopped(core, conversationId, scope, false)

async function setStopped(core: Core, conversationId: string, scope: Scope, isStopped: boolean) {
  const conversation = await findConversation(core, conversationId, scope)
  return changeState(core, botEvents, conversation, (current) =>
    (current?.isStopped ?? false) === isStopped ? undefined : { isStopped },
  )
}
