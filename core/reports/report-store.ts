import type { Collection } from 'mongodb'
import type { ConversationDocument } from '../conversations/conversation-store.ts'
import type { EventDocument } from '../log/event-store.ts'
import type { ReportedConversation } from './model.ts'

interface Place {
  lastMessageAt: Date
  conversationId: string
}

export interface ReportStore {
  /**
   * Returns conversations that were created before `before` and had a message since `since`, ordered by
   * their last message, after a place in this order.
   */
  active(
    workspaceId: string,
    range: { since: Date; before: Date; after: Place | undefined },
    limit: number,
  ): Promise<(Place & { tags: string[] })[]>
  /** Returns what the logs say about conversations with a message of the visitor. */
  read(conversationIds: string[]): Promise<(Omit<ReportedConversation, 'tags'> & { conversationId: string })[]>
}

/** Ratings are events of the log with a score from 1 to 5. Logs of earlier versions have none. */
const ratingType = 'rating.given'
const score = { $cond: [{ $in: ['$data.score', [1, 2, 3, 4, 5]] }, '$data.score', '$$REMOVE'] }

const place = { sequence: '$sequence', at: '$occurredAt' }
const placeIf = (condition: object) => ({ $cond: [condition, place, '$$REMOVE'] })

export function createReportStore({
  conversations,
  events,
}: {
  conversations: Collection<ConversationDocument>
  events: Collection<EventDocument>
}): ReportStore {
  return {
    async active(workspaceId, { since, before, after }, limit) {
      const found = await conversations
        .find(
          {
            workspaceId,
            lastMessageAt: { $gte: after?.lastMessageAt ?? since },
            createdAt: { $lt: before },
            erasing: { $exists: false },
            ...(after && {
              $or: [
                { lastMessageAt: { $gt: after.lastMessageAt } },
                { lastMessageAt: after.lastMessageAt, _id: { $gt: after.conversationId } },
              ],
            }),
          },
          { projection: { lastMessageAt: 1, 'tags.names': 1 }, hint: 'by_activity' },
        )
        .sort({ lastMessageAt: 1, _id: 1 })
        .limit(limit)
        .toArray()
      return found.map(({ _id, lastMessageAt, tags }) => ({
        conversationId: _id,
        lastMessageAt: lastMessageAt!,
        tags: tags?.names ?? [],
      }))
    },

    async read(conversationIds) {
      const found = await events
        .aggregate<{ _id: string; begun: { at: Date }; answer?: { at: Date } | null; scores: number[] }>([
          {
            $match: {
              conversationId: { $in: conversationIds },
              type: { $in: ['message.accepted', 'message.received', ratingType] },
            },
          },
          {
            $group: {
              _id: '$conversationId',
              begun: { $min: placeIf({ $eq: ['$type', 'message.accepted'] }) },
              answers: { $push: placeIf({ $eq: ['$message.author.kind', 'agent'] }) },
              scores: { $push: score },
            },
          },
          { $match: { 'begun.at': { $exists: true } } },
          {
            $project: {
              begun: 1,
              scores: 1,
              answer: {
                $min: { $filter: { input: '$answers', cond: { $gt: ['$$this.sequence', '$begun.sequence'] } } },
              },
            },
          },
        ])
        .toArray()
      return found.map(({ _id, begun, answer, scores }) => ({
        conversationId: _id,
        begunAt: begun.at,
        ...(answer && { answeredAt: answer.at }),
        scores,
      }))
    },
  }
}
