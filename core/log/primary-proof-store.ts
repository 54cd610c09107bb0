/** Tells how far a reader that follows a collection of a replica set is behind its primary. */
export interface PrimaryProof {
  /** The reader has got this document. */
  given(id: string): void
  /** The reader has everything that was written before this time; undefined while that is not known. */
  asOf(): number | undefined
}

const askEveryMs = 150
/** A reader that is further behind follows a server that is not the primary any more. */
const lostAfterMs = 5_000

/**
 * A cursor goes on when its server stops being the primary, and a primary that is cut off from the others answers for some
 * seconds more. Neither answer proves that nothing new was written. So `readNewest` asks for the newest document with a
 * linearizable read, which a majority has to confirm. The reader is as current as that question once it has got that
 * document.
 *
 * Errors of `asOf`: when the reader has not caught up for seconds, and has to follow anew.
 */
export function createPrimaryProof(readNewest: () => Promise<string>, monotonic: () => number): PrimaryProof {
  const beganAt = monotonic()
  let proven: number | undefined
  let lastGiven = ''
  /** The question under way: its answer, once it is there, and what the reader has got since it was asked. */
  let question: { askedAt: number; newest?: string; given: Set<string> } | undefined
  let nextAt = Number.NEGATIVE_INFINITY

  async function ask() {
    const asked: NonNullable<typeof question> = { askedAt: monotonic(), given: new Set([lastGiven]) }
    question = asked
    nextAt = asked.askedAt + askEveryMs
    try {
      asked.newest = await readNewest()
    } catch {
      // Asked again; until then nothing is proven.
      question = undefined
    }
  }

  return {
    given(id) {
      lastGiven = id
      question?.given.add(id)
    },

    asOf() {
      if (question?.newest !== undefined && question.given.has(question.newest)) {
        proven = question.askedAt
        question = undefined
      }
      if (!question && monotonic() >= nextAt) void ask()
      if (monotonic() - (proven ?? beganAt) > lostAfterMs) throw new Error('the cursor is behind the primary')
      return proven
    },
  }
}
