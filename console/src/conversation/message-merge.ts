import type { Message } from '#proto/messaging/v1/messaging_pb.js'

const order = ['queued', 'sent', 'delivered', 'read']

/** Position of a state in its order. A message never goes back to an earlier state. */
export const stateRank = (state: string) => order.indexOf(state)

/** Merges two lists of messages: no duplicates, ordered by sequence, the latest state of each. */
export function mergeMessages(known: readonly Message[], more: readonly Message[]): Message[] {
  const byId = new Map(known.map((message) => [message.messageId, message]))
  for (const message of more) {
    const earlier = byId.get(message.messageId)
    if (!earlier || stateRank(message.state) >= stateRank(earlier.state)) byId.set(message.messageId, message)
  }
  return [...byId.values()].sort((one, other) => one.sequence - other.sequence)
}

/** Sets the state of one message, unless the message has a later state already. */
export function withState(messages: readonly Message[], messageId: string, state: string): readonly Message[] {
  const found = messages.find((message) => message.messageId === messageId)
  if (!found || stateRank(state) <= stateRank(found.state)) return messages
  return messages.map((message) => (message === found ? { ...message, state } : message))
}

/** Sequence of the visitor's latest message that has not reached the state; 0 if all have. */
export function lastBefore(messages: readonly Message[], state: 'delivered' | 'read'): number {
  const found = messages.findLast(
    (message) => message.author?.kind === 'visitor' && stateRank(message.state) < stateRank(state),
  )
  return found?.sequence ?? 0
}
