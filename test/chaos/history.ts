/**
 * An action or observation of a client in a chaos run. Entries are in the order of recording. Each message text
 * contains the name of its visitor (`textOf`), so that the checker detects a message that reaches another visitor.
 */
export type Entry =
  | { kind: 'session'; visitor: string; sessionId: string; conversationId: string }
  /** First attempt of a send. Later attempts have the same operation id. */
  | { kind: 'sent'; operation: string; conversationId: string }
  | { kind: 'acknowledged'; operation: string; conversationId: string; messageId: string; sequence: number }
  /** A send that failed with an error that is not retryable. */
  | { kind: 'refused'; operation: string; code: string }
  /** A visitor's stream connects and delivers events after the sequence number `after`. */
  | { kind: 'stream'; visitor: string; after: number }
  /** A visitor has read its history after a reset. Its stream continues after this sequence number. */
  | { kind: 'read again'; visitor: string; lastSequence: number }
  | { kind: 'event'; visitor: string; sequence: number; type: string; messageId?: string; text?: string }
  | { kind: 'history asked'; visitor: string; read: number }
  | { kind: 'history'; visitor: string; read: number; messages: HistoryMessage[] }
  /**
   * A reload of the page. `pages` has the sequence numbers of the messages in the history. `streamed` has the
   * sequence numbers of the events that a new stream delivers after `lastSequence`.
   */
  | { kind: 'reload'; visitor: string; lastSequence: number; pages: number[]; streamed: number[] }
  /** A backup of the database was taken. */
  | { kind: 'backed up' }
  /** The latest backup was restored. */
  | { kind: 'restored' }
  /** The core acknowledged the revocation of a session that had an open stream. */
  | { kind: 'revoked'; visitor: string; streamEnded: boolean }
  /** The core acknowledged the capture of a lead. */
  | { kind: 'lead'; leadId: string }
  | { kind: 'feed opened'; reader: string }
  /**
   * A reader of the feed got an event about a conversation, a lead or a delivery. It may get an event
   * again with the same cursor.
   */
  | {
      kind: 'feed event'
      reader: string
      cursor: string
      type: string
      about: string
      sequence: number
      messageId?: string
    }
  /** The cursor of a reader belongs to a restored database. The reader begins with the oldest event. */
  | { kind: 'feed read again'; reader: string }
  /** A delivery's request arrived at the receiver. */
  | { kind: 'delivery'; deliveryId: string; leadId: string }
  /** A worker lost its claim on a delivery: the database now names another claim on this delivery. */
  | { kind: 'claim lost'; deliveryId: string; claimId: string }
  /** A result was reported under a lost claim. `counted` is true if the core accepted the result. */
  | { kind: 'late result'; claimId: string; counted: boolean }
  /** A credential still works although the core acknowledged the end of its session. */
  | { kind: 'still live'; what: string }
  /** A majority read that began after the acknowledgement did not have the message. */
  | { kind: 'not in majority'; operation: string }
  /** The memory of a part exceeded its bound while clients did not read their answers. */
  | { kind: 'memory'; part: string; mebibytes: number }
  /** The core acknowledged the withdrawal of this visitor's only message. Times are in milliseconds. */
  | { kind: 'withdrawn'; visitor: string; at: number }
  /** The receiver of a hook got the text of this visitor's message. */
  | { kind: 'text received'; visitor: string; at: number }
  | ({ kind: 'answer' } & Answer)
  /** An operation did not complete in time after the faults ended. */
  | { kind: 'stuck'; what: string }

/** An answer that a bot wrote part by part, and what its visitor saw of it. */
export interface Answer {
  operation: string
  /** The text that the bot wanted to write. */
  planned: string
  /** The text that was acknowledged to the bot. */
  acknowledged: string
  /** The state of the bot's last call. */
  state: string
  /** The length that each call returned, beside that of the acknowledged text. */
  lengths: { expected: number; got: number }[]
  /** What the visitor's stops, all with one key, returned. */
  stops: { state: string; sequence: number }[]
  /** The states of calls that began after a stop was acknowledged. */
  statesAfterStop: string[]
  /** The texts that the visitor saw, in order. */
  shown: string[]
  /** The message of the history, after it has ended. */
  final?: { body: string; growing?: boolean }
}

export interface HistoryMessage {
  messageId: string
  sequence: number
  text: string
}

/** Final content of the database. */
export interface Records {
  events: RecordedEvent[]
  leads: string[]
  subscriptions: string[]
  deliveries: RecordedDelivery[]
}

export interface RecordedEvent {
  conversationId: string
  sequence: number
  type: string
  /** Set if the event is sent only to the streams of this session. */
  sessionId?: string
  transient: boolean
  messageId?: string
  /** Client operation id of the message. */
  operation?: string
}

export interface RecordedDelivery {
  deliveryId: string
  leadId: string
  subscriptionId: string
  status: string
  /** Ids of the claims under which the core recorded outcomes of the delivery's attempts. */
  claims: string[]
}

export interface Recorder {
  entries: Entry[]
  add(entry: Entry): void
}

export function createRecorder(): Recorder {
  const entries: Entry[] = []
  return { entries, add: (entry) => void entries.push(entry) }
}

/** Returns a message text whose first word is the name of its visitor. */
export const textOf = (visitor: string, words: string) => `${visitor} ${words}`
export const ownerOf = (text: string) => text.split(' ', 1)[0]
