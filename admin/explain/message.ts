import { timeText } from '../output.ts'
import type { Services } from '../services.ts'

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
