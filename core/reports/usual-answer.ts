import { createLruCache } from '../../platform/lru-cache.ts'
import { createPace } from '../concurrency/pace.ts'
import { perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { reportStoreOf, rowOf } from './report-store.ts'

const readEveryMs = 3_600_000
const weekMs = 7 * 86_400_000
const minAnswered = 10
const maxMinutes = 24 * 60
/** Number of conversations in one reading. */
const newest = 200
const maxWorkspaces = 10_000

/** The time that visitors usually wait for the first answer. */
export const usualAnswersOf = perCore((core) => {
  const { logger, now } = core
  const store = reportStoreOf(core)
  const known = createLruCache<{ minutes: number | undefined; readAt: number }>(maxWorkspaces)
  const pace = createPace({ share: 0.1 })
  let turn: Promise<unknown> = Promise.resolve()

  async function read(workspaceId: string, readAt: number) {
    const ids = await store.newest(workspaceId, new Date(readAt - weekMs), newest)
    const found = (await store.read(ids)).map((one) => ({ ...one, tags: [] }))
    const { answered, medianAnswerSeconds = 0 } = rowOf('', found)
    const minutes = Math.max(1, Math.ceil(medianAnswerSeconds / 60))
    const isShown = answered >= minAnswered && minutes <= maxMinutes
    known.set(workspaceId, { minutes: isShown ? minutes : undefined, readAt })
  }

  return {
    /**
     * Returns the minutes within which half of the week's newest conversations were answered, rounded up.
     * Returns undefined until they are known, for fewer than 10 answers, and for more than a day. Each call
     * returns what is known. It starts a new reading if the last one is an hour old.
     */
    minutesOf(workspaceId: string) {
      const { minutes, readAt = Number.NEGATIVE_INFINITY } = known.get(workspaceId) ?? {}
      const at = now()
      if (at - readAt >= readEveryMs) {
        known.set(workspaceId, { minutes, readAt: at })
        turn = turn
          .then(() => pace(() => read(workspaceId, at)))
          .catch(logFailure(logger, 'reading the usual time to answer failed'))
      }
      return minutes
    },
  }
})
