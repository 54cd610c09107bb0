/**
 * What clients did and saw, in the order in which this process learnt of it. Conversations are named by their id; whose a text is
 * stands in the text itself, so that one which reaches somebody else gives itself away.
 */
export type Entry =
  | { kind: 'session'; visitor: string; sessionId: string; conversationId: string }
  /** The first try; every repeat has the same operation. */
  | { kind: 'sent'; operation: string; conversationId: string }
  | { kind: 'acknowledged'; operation: string; conversationId: string; messageId: string; sequence: number }
  /** An answer that a client does not repeat. */
  | { kind: 'refused'; operation: string; code: string }
  /** A connection of a visitor's stream, with where it begins. */
  | { kind: 'stream'; visitor: string; after: number }
  | { kind: 'event'; visitor: string; sequence: number; type: string; messageId?: string; text?: string }
  | { kind: 'history asked'; visitor: string; read: number }
  | { kind: 'history'; visitor: string; read: number; messages: HistoryMessage[] }
  /** A page that was opened anew: the messages of the history's pages, and of the stream from `lastSequence` on. */
  | { kind: 'reload'; visitor: string; lastSequence: number; pages: number[]; streamed: number[] }
  /** An operator revoked a session with an open stream, and was told that it is done. */
  | { kind: 'revoked'; visitor: string; streamEnded: boolean }
  /** The capture of a lead was acknowledged. */
  | { kind: 'lead'; leadId: string }
  /** A request arrived at the receiver. */
  | { kind: 'delivery'; deliveryId: string; leadId: string }
  /** The books have another claim on the delivery than this one. */
  | { kind: 'claim lost'; deliveryId: string; claimId: string }
  /** A result under a claim that was lost, and whether the core says that it counts. */
  | { kind: 'late result'; claimId: string; counted: boolean }
  /** An operator's end of it was acknowledged. */
  | { kind: 'still live'; what: string }
  /** What had to come once everything worked again did not come in time. */
  | { kind: 'stuck'; what: string }

export interface HistoryMessage {
  messageId: string
  sequence: number
  text: string
}

/** What the database holds at the end. */
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
  /** Of one session alone. */
  sessionId?: string
  transient: boolean
  messageId?: string
  /** The client's own name of the operation that brought it. */
  operation?: string
}

export interface RecordedDelivery {
  deliveryId: string
  leadId: string
  subscriptionId: string
  status: string
  /** The claims under which its attempts' outcomes were written. */
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

/** Texts name whose they are, before their first space. */
export const textOf = (visitor: string, words: string) => `${visitor} ${words}`
export const ownerOf = (text: string) => text.split(' ', 1)[0]
