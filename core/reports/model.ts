/** What the log and the document of one conversation say for a report. */
export interface ReportedConversation {
  begunAt: Date
  /** Time of the first message of an agent after the visitor's first message. */
  answeredAt?: Date
  /** Scores of the visitor's ratings. */
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

/** Counts the conversations of one row. */
export function createTally(name: string) {
  const answerMs: number[] = []
  let conversations = 0
  let ratings = 0
  let sum = 0

  return {
    add({ begunAt, answeredAt, scores }: ReportedConversation) {
      conversations += 1
      // Clocks of cores may differ, so an answer may seem to be older than the question.
      if (answeredAt) answerMs.push(Math.max(0, answeredAt.getTime() - begunAt.getTime()))
      for (const score of scores) {
        ratings += 1
        sum += score
      }
    },
    get conversations() {
      return conversations
    },
    row(): ReportRow {
      const sorted = Float64Array.from(answerMs).sort()
      const within = (share: number) => sorted[Math.ceil(share * sorted.length) - 1]! / 1000
      return {
        name,
        conversations,
        answered: sorted.length,
        ...(sorted.length > 0 && { medianAnswerSeconds: within(0.5), p90AnswerSeconds: within(0.9) }),
        ratings,
        ...(ratings > 0 && { meanRating: sum / ratings }),
      }
    },
  }
}

export type Tally = ReturnType<typeof createTally>
