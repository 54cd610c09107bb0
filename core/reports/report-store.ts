import type { ReportRow } from '#proto/messaging/v1/messaging_pb.js'
import type { ProtoFields } from '../../contract/proto-fields.ts'
import { perCore } from '../core.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { idOnly, idsOf } from '../mongodb/with-id.ts'

const partSize = 200

/** A rating is an event with a score from 1 to 5. */
const ratingType = 'rating.given'
const score = { $cond: [{ $in: ['$data.score', [1, 2, 3, 4, 5]] }, '$data.score', '$$REMOVE'] }

const place = { sequence: '$sequence', at: '$occurredAt' }
const placeIf = (condition: object) => ({ $cond: [condition, place, '$$REMOVE'] })

export const reportStoreOf = perCore(({ db: { conversations, events } }) => ({
  /**
   * Yields parts of the conversations that were created before `before` and had a message since `since`.
   * One that gets a message meanwhile may be yielded twice.
   */
  async *active(workspaceId: string, { since, before }: { since: Date; before: Date }) {
    const active = { lastMessageAt: { $gte: since }, createdAt: { $lt: before } }
    const cursor = conversations
      .find(
        { workspaceId, ...active, ...notErasing },
        { projection: { 'tags.names': 1 }, hint: 'by_activity', batchSize: partSize },
      )
      .sort({ lastMessageAt: 1 })
    try {
      while (await cursor.hasNext())
        yield cursor.readBufferedDocuments().map(({ _id, tags }) => ({ conversationId: _id, tags: tags?.names ?? [] }))
    } finally {
      await cursor.close()
    }
  },

  async newest(workspaceId: string, since: Date, limit: number) {
    const found = conversations
      .find(
        { workspaceId, lastMessageAt: { $gte: since }, ...notErasing },
        { ...idOnly, hint: 'by_activity', batchSize: limit + 1 },
      )
      .sort({ lastMessageAt: -1 })
      .limit(limit)
    return idsOf(await found.toArray())
  },

  /** Reads the logs of conversations, without those that have no message of the visitor. */
  async read(conversationIds: string[]): Promise<(Omit<ReportedConversation, 'tags'> & { conversationId: string })[]> {
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
}))

export interface ReportedConversation {
  begunAt: Date
  /** Time of an agent's first message after the visitor's first. */
  answeredAt?: Date
  scores: number[]
  tags: string[]
}

/** Percentiles are times that occurred (nearest rank). */
export function rowOf(name: string, conversations: ReportedConversation[]): ProtoFields<ReportRow> {
  // Clocks of cores differ, so an answer may seem older than the question.
  const answerMs = conversations.flatMap(({ begunAt, answeredAt }) =>
    answeredAt ? [Math.max(0, answeredAt.getTime() - begunAt.getTime())] : [],
  )
  const sorted = Float64Array.from(answerMs).sort()
  const within = (share: number) => sorted[Math.ceil(share * sorted.length) - 1]! / 1000
  const scores = conversations.flatMap((conversation) => conversation.scores)
  return {
    name,
    conversations: conversations.length,
    answered: sorted.length,
    ...(sorted.length > 0 && { medianAnswerSeconds: within(0.5), p90AnswerSeconds: within(0.9) }),
    ratings: scores.length,
    ...(scores.length > 0 && { meanRating: scores.reduce((sum, score) => sum + score, 0) / scores.length }),
  }
}
