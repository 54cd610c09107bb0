import type { EventType, MessageState } from './model.ts'

declare const brand: unique symbol
/** Key of a logical operation in a conversation's log. Only `operationKeys` makes it. */
export type OperationKey = string & { readonly [brand]: true }

const agentPrefix = 'agent '

/**
 * Makes the key of every operation that writes to a log. A key is unique in its conversation and
 * consists of words. The first words name the writer. Operation ids that visitors and agents choose
 * have no spaces, so they cannot form the key of another writer. Only the keys of visitors begin
 * with a session id. Never change the format: a repeat must find the event that an earlier version
 * wrote.
 */
export const operationKeys = {
  visitorMessage: (sessionId: string, clientOperationId: string) => keyOf(sessionId, clientOperationId),
  agentMessage: (clientOperationId: string) => `${agentPrefix}${clientOperationId}` as OperationKey,
  /** An event about the session itself: its end, its identification. */
  session: (sessionId: string, type: EventType) => keyOf('session', sessionId, type),
  messageState: (messageId: string, state: MessageState) => keyOf('state', messageId, state),
  assignment: (version: number) => keyOf('assignment', String(version)),
  typing: (turnId: string, step: string) => keyOf('typing', turnId, step),
  command: (commandId: string, type: EventType) => keyOf(commandId, type),
}

const keyOf = (...words: string[]) => words.join(' ') as OperationKey

/** The operation id that an agent chose for a message; undefined for any other key. */
export function agentOperationIn(key: OperationKey | undefined): string | undefined {
  return key?.startsWith(agentPrefix) ? key.slice(agentPrefix.length) : undefined
}
