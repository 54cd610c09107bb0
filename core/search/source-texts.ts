import type { EventStore } from '../log/event-store.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import type { SearchSource } from './model.ts'
import type { SourceText } from './search.ts'
import { visitorTexts } from './search-index.ts'

interface Note {
  operationId: string
  body: string
  author: { displayName: string }
}

/**
 * Stores of the texts of conversations and leads. Hidden conversations and leads are not returned.
 */
export interface TextStores {
  conversations: { notesOf(conversationId: string): Promise<Note[]> }
  leads: { findMany(leadIds: string[]): Promise<{ leadId: string; fields: Record<string, string> }[]> }
  events: Pick<EventStore, 'at'>
  sessions: Pick<SessionStore, 'find'>
}

/**
 * Creates a function that reads the current texts of sources. The texts have the order of the
 * sources.
 */
export function createSourceTexts({ conversations, leads, events, sessions }: TextStores) {
  return async (sources: SearchSource[]): Promise<(SourceText | undefined)[]> => {
    const places = sources.flatMap((source) => (source.kind === 'message' ? source : []))
    const noted = [...new Set(sources.flatMap((each) => (each.kind === 'note' ? each.conversationId : [])))]
    const [messages, notes, visitors, captured] = await Promise.all([
      events.at(places.map(({ conversationId, sequence }) => ({ conversationId, sequence }))),
      Promise.all(noted.map(async (id) => [id, await conversations.notesOf(id)] as const)),
      sessions.find(sources.flatMap((source) => (source.kind === 'visitor' ? source.sessionId : []))),
      leads.findMany(sources.flatMap((source) => (source.kind === 'lead' ? source.leadId : []))),
    ])
    const messagesByPlace = new Map(
      messages.map((event) => [`${event.conversationId} ${event.sequence}`, event.message]),
    )
    const notesById = new Map(notes)
    const identities = new Map(visitors.map(({ sessionId, identity }) => [sessionId, identity]))
    const fieldsById = new Map(captured.map(({ leadId, fields }) => [leadId, fields]))

    function textOf(source: SearchSource): SourceText | undefined {
      switch (source.kind) {
        case 'message': {
          const message = messagesByPlace.get(`${source.conversationId} ${source.sequence}`)
          return message && { texts: [message.body], author: message.author }
        }
        case 'note': {
          const note = notesById
            .get(source.conversationId)
            ?.find(({ operationId }) => operationId === source.operationId)
          return note && { texts: [note.body], author: { kind: 'agent', displayName: note.author.displayName } }
        }
        case 'visitor': {
          const identity = identities.get(source.sessionId)
          return identity && { texts: visitorTexts(identity) }
        }
        case 'lead': {
          const fields = fieldsById.get(source.leadId)
          return fields && { texts: Object.values(fields) }
        }
      }
    }
    return sources.map(textOf)
  }
}
