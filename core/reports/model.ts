export interface ReportedConversation {
  begunAt: Date
  /** Time of an agent's first message after the visitor's first. */
  answeredAt?: Date
  scores: number[]
  tags: string[]
}

export interface ReportRow {
  /** A day, an hour or a tag. */
  name: string
  conversations: number
  answered: number
  /** Half of the answers came within this time. */
  medianAnswerSeconds?: number
  p90AnswerSeconds?: number
  ratings: number
  meanRating?: number
}

export interface Report {
  firstDay: string
  total: ReportRow
  byDay: ReportRow[]
  byHour: ReportRow[]
  byTag: ReportRow[]
}

/** Percentiles are times that occurred (nearest rank). */
export function rowOf(name: string, conversations: ReportedConversation[]): ReportRow {
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
