import { randomUUID } from 'node:crypto'
import { createClient } from '@connectrpc/connect'
import { BotService } from '#proto/bot/v1/bot_pb.js'
import { EventsService } from '#proto/events/v1/events_pb.js'
import type { RunningCore } from '../context.ts'
import { appendAsBot, requestHuman, sendAsBot } from '../conversations/bots.ts'
import { stopAnswer as stopMessage } from '../conversations/growing-messages.ts'
import type { SessionContent, VisitorCredentials } from '../sessions/model.ts'
import { accessOf } from '../transport/caller.ts'
import { transportTo } from './transports.ts'

export const bot = { displayName: 'Robo', avatarUrl: 'https://shop.example/robo.png' }

/** Sends a message of a bot. `clientOperationId` is also the text of the message. */
export const say = (core: RunningCore, { conversationId }: SessionContent, clientOperationId: string, more = {}) =>
  sendAsBot(
    core,
    { conversationId, clientOperationId, body: clientOperationId, bot, quickReplies: [], ...more },
    undefined,
  )

/** Adds text to a message of a bot. */
export const append = (
  core: RunningCore,
  { conversationId }: Pick<SessionContent, 'conversationId'>,
  clientOperationId: string,
  offset: number,
  text: string,
  more: { done?: boolean; quickReplies?: string[] } = {},
) =>
  appendAsBot(
    core,
    { conversationId, clientOperationId, offset, text, done: false, quickReplies: [], bot, ...more },
    undefined,
  )

/** Stops a growing message for its visitor. */
export const stopAnswer = (
  core: RunningCore,
  { credentials }: { credentials: VisitorCredentials },
  messageId: string,
  idempotencyKey: string = randomUUID(),
) => stopMessage(core, { credentials, messageId, idempotencyKey })

/** Asks for a person. */
export const request = (
  core: RunningCore,
  { conversationId }: SessionContent,
  clientOperationId = 'help',
  summary = 'Wants Ada.',
) => requestHuman(core, { conversationId, clientOperationId, bot, summary }, undefined)

/** Returns the clients of a bot, with the headers of its token. */
export async function botOf(core: RunningCore, workspaceId: string) {
  const token = await accessOf(core).issue({ subject: 'robo', scopes: ['bots:act'], workspaceId })
  const transport = transportTo(core)
  const headers = { authorization: `Bearer ${token}` }
  return { headers, bots: createClient(BotService, transport), events: createClient(EventsService, transport) }
}
