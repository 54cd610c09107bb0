import type { Collections } from '../database/database.ts'
import type { VisitorTraces } from './visitor-traces-store.ts'

/** One stored record of a visitor. */
export interface VisitorRecord {
  kind: 'session' | 'ban' | 'conversation' | 'event' | 'command' | 'lead' | 'delivery'
  [field: string]: unknown
}

export interface VisitorDataStore {
  /** Reads the stored data without internal fields. `screenshot` of a command has the file. */
  read(traces: VisitorTraces): AsyncIterable<VisitorRecord>
}

export function createVisitorDataStore(collections: Collections): VisitorDataStore {
  const { sessions, visitors, conversations, events, commands, leads, deliveries } = collections

  return {
    async *read({ sessionIds, visitorIds, conversationIds, commandIds, leadIds }) {
      for await (const session of sessions.find({ _id: { $in: sessionIds } })) {
        const {
          _id,
          renewal: _,
          identity,
          successor: __,
          afterErasures: ___,
          joinedAfterErasures: ____,
          ...rest
        } = session
        const { externalSubject, displayName, context, verifiedAt } = identity ?? {}
        yield {
          kind: 'session',
          sessionId: _id,
          ...rest,
          ...(identity && {
            identity: { externalSubject, displayName, verifiedAt, context: Object.fromEntries(context ?? []) },
          }),
        }
      }
      for await (const { _id, ...ban } of visitors.find({ _id: { $in: visitorIds }, bannedAt: { $exists: true } })) {
        yield { kind: 'ban', visitorId: _id, ...ban }
      }
      for await (const { _id, ...rest } of conversations.find({ _id: { $in: conversationIds } })) {
        yield { kind: 'conversation', conversationId: _id, ...rest }
      }
      for (const conversationId of conversationIds) {
        for await (const event of events.find({ conversationId }).sort({ sequence: 1 })) {
          const { sequence, type, occurredAt, sessionId, message, currentState, data } = event
          yield { kind: 'event', conversationId, sequence, type, occurredAt, sessionId, message, currentState, data }
        }
      }
      for await (const command of commands.find({ _id: { $in: commandIds } })) {
        const { _id, inputHash: _, operationId: __, uploads: ___, ...rest } = command
        yield { ...rest, kind: 'command', commandId: _id, command: command.kind }
      }
      for await (const lead of leads.find({ _id: { $in: leadIds } })) {
        const { _id, inputHash: _, operationKey: __, fanOut: ___, ...rest } = lead
        yield { kind: 'lead', leadId: _id, ...rest }
      }
      for await (const delivery of deliveries.find({ leadId: { $in: leadIds } })) {
        const { _id, leadId, subscriptionId, status, attempts, createdAt } = delivery
        yield { kind: 'delivery', deliveryId: _id, leadId, subscriptionId, status, attempts, createdAt }
      }
    },
  }
}
