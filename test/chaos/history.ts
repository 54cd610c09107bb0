/**
 * Actions and observations of clients, in the order of recording. Each text names its owner
 * (`textOf`), so that the checker detects texts that reach another visitor.
 */
export type Entry =
  | { kind: 'session'; visitor: string; sessionId: string; conversationId: string }
  /** First attempt of a send. Repeats have the same operation. */
  | { kind: 'sent'; operation: string; conversationId: string }
  | { kind: 'acknowledged'; operation: string; conversationId: string; messageId: string; sequence: number }
  /** A send that failed with an error that is not retryable. */
  | { kind: 'refused'; operation: string; code: string }
  /** A visitor's stream connects, starting after this sequence. */
  | { kind: 'stream'; visitor: string; after: number }
  | { kind: 'event'; visitor: string; sequence: number; type: string; messageId?: string; text?: string }
  | { kind: 'history asked'; visitor: string; read: number }
  | { kind: 'history'; visitor: string; read: number; messages: HistoryMessage[] }
  /** A reloaded page: sequences from history pages, and from the stream after `lastSequence`. */
  | { kind: 'reload'; visitor: string; lastSequence: number; pages: number[]; streamed: number[] }
  /** The revocation of a session with an open stream was acknowledged. */
  | { kind: 'revoked'; visitor: string; streamEnded: boolean }
  /** The capture of a lead was acknowledged. */
  | { kind: 'lead'; leadId: string }
  /** A request arrived at the receiver. */
  | { kind: 'delivery'; deliveryId: string; leadId: string }
  /** The database has a different claim on the delivery. */
  | { kind: 'claim lost'; deliveryId: string; claimId: string }
  /** A result reported under a lost claim, and whether the core accepted it. */
  | { kind: 'late result'; claimId: string; counted: boolean }
  /** Access works although its end was acknowledged. */
  | { kind: 'still live'; what: string }
  /** Something did not complete in time after the faults ended. */
  | { kind: 'stuck'; what: string }

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
  /** Set for events of a single session. */
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
  /** Claims under which outcomes of its attempts were recorded. */
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

/** The first word of a text is its owner. */
export const textOf = (visitor: string, words: string) => `${visitor} ${words}`
export const ownerOf = (text: string) => text.split(' ', 1)[0]
