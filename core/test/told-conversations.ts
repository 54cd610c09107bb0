import type { RunningCore } from '../context.ts'
import { newId } from '../ids.ts'
import type { LogEvent } from '../log-event.ts'

export const newWorkspace = () => `ws_${newId('cnv')}`

export interface Story {
  begunAt: string
  /** Times of the messages of each author, in seconds after `begunAt`. The visitor also sends one at `begunAt`. */
  agent?: number[]
  bot?: number[]
  visitor?: number[]
  scores?: unknown[]
  tags?: string[]
  more?: object
}

/** Stores a conversation with the events of a story. */
export async function tell(
  core: RunningCore,
  workspaceId: string,
  { begunAt, agent = [], bot = [], visitor = [], scores = [], tags, more }: Story,
) {
  const { conversations, events } = core.database.collections
  const conversationId = newId('cnv')
  const at = (seconds: number) => new Date(Date.parse(begunAt) + seconds * 1000)
  const message = (kind: string) => (seconds: number) => ({
    occurredAt: at(seconds),
    type: kind === 'visitor' ? 'message.accepted' : 'message.received',
    message: { messageId: newId('msg'), author: { kind }, body: 'private words', contentType: 'text', state: 'sent' },
  })
  const told = [
    ...[0, ...visitor].map(message('visitor')),
    ...agent.map(message('agent')),
    ...bot.map(message('bot')),
    ...scores.map((score, index) => ({
      occurredAt: at(9000 + index),
      type: 'rating.given',
      data: { score, comment: 'private' },
    })),
  ].sort((one, other) => one.occurredAt.getTime() - other.occurredAt.getTime())
  await events.insertMany(told.map((event, index) => ({ conversationId, sequence: index + 1, ...event }) as LogEvent))
  await conversations.insertOne({
    _id: conversationId,
    workspaceId,
    connectionId: 'con_1',
    epoch: newId('cnv'),
    createdAt: at(-60),
    lastMessageAt: told.at(-1)!.occurredAt,
    ...(tags && { tags: { names: tags, tag: tags[0]!, isAdded: true, at: at(0), version: 1, announced: true } }),
    ...more,
  })
}
