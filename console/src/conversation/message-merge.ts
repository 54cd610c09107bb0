import type { Message } from '#proto/messaging/v1/messaging_pb.js'

const order = ['queued', 'sent', 'delivered', 'read']

/** How far a state is; states go forwards only. */
export const stateRank = (state: string) => order.indexOf(state)

/** Two views of one conversation's messages as one: each message once, in order, with the state that is furthest. */
export function mergeMessages(known: readonly Message[], more: readonly Message[]): Message[] {
  const byId = new Map(known.map((message) => [message.messageId, message]))
  for (const message of more) {
    const earlier = byId.get(message.messageId)
    if (!earlier || stateRank(message.state) >= stateRank(earlier.state)) byId.set(message.messageId, message)
  }
  return [...byId.values()].sort((one, other) => one.sequence - other.sequence)
}

/** The same messages, with one that has come further. */
export function withState(messages: readonly Message[], messageId: string, state: string): readonly Message[] {
  const found = messages.find((message) => message.messageId === messageId)
  if (!found || stateRank(state) <= stateRank(found.state)) return messages
  return messages.map((message) => (message === found ? { ...message, state } : message))
}

/** Sequence of the latest message of the visitor that is not in the state yet; 0 when all are. */
export function lastBefore(messages: readonly Message[], state: 'delivered' | 'read'): number {
  const found = messages.findLast(
    (message) => message.author?.kind === 'visitor' && stateRank(message.state) < stateRank(state),
  )
  return found?.sequence ?? 0
}
