import type { EventType, MessageState } from './model.ts'

declare const brand: unique symbol
/** The key of a logical operation in a conversation's log, which only `operationKeys` makes. */
export type OperationKey = string & { readonly [brand]: true }

const agentPrefix = 'agent '

/**
 * The key of every operation that writes to a log, unique in its conversation. A key is a list of words. Its first words
 * name the writer, so the operation id that a visitor or an agent chooses, which has no space, cannot make a key of another
 * writer. The first word of a visitor's key is a session id; no other writer has one there. Never change a key's form: a
 * repeat must find the event that the version before wrote.
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

/** The operation id that an agent chose for a message; undefined for every other key. */
export function agentOperationIn(key: OperationKey | undefined): string | undefined {
  return key?.startsWith(agentPrefix) ? key.slice(agentPrefix.length) : undefined
}
