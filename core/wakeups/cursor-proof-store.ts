import { ObjectId } from 'mongodb'

/** Interval in milliseconds between two beats while somebody needs the proof. */
export const beatEveryMs = 250
/** Interval in milliseconds between two beats otherwise. They tell the other cores that this one lives. */
const restingBeatEveryMs = 25_000
/**
 * If the cursor does not return a confirmed beat within this time in milliseconds, its server is
 * probably not the primary.
 */
const lostAfterMs = 5_000

/**
 * Finds out up to which time a tailable cursor has returned every document. An empty result of the
 * cursor is no proof. The server of the cursor may no longer be the primary, or may be cut off from
 * the other servers. It may not have detected this yet. So the reader writes a beat: a document that
 * a majority of the servers must confirm. When the beat is confirmed and the cursor has returned it,
 * the cursor has also returned everything that was written before. While no majority confirms beats,
 * the time does not change and the cursor is kept.
 *
 * `writeBeat` must not be retried after a failure. A retry on a new primary could confirm a beat
 * that the cursor has received from the former primary.
 */
export function createCursorProof(
  writeBeat: (id: ObjectId) => Promise<unknown>,
  monotonic: () => number,
  isNeeded: () => boolean = () => true,
) {
  let proven: number | undefined
  let pending: { id: ObjectId; startedAt: number; confirmedAt?: number; isReceived: boolean } | undefined
  let lastAt = Number.NEGATIVE_INFINITY

  async function beat() {
    const beat = { id: new ObjectId(), startedAt: monotonic(), isReceived: false }
    pending = beat
    lastAt = beat.startedAt
    try {
      await writeBeat(beat.id)
      pending.confirmedAt = monotonic()
    } catch {
      // The outcome is unknown, so the beat proves nothing. The next call of `asOf` writes another.
      pending = undefined
    }
  }

  function beatIfDue() {
    if (!pending && monotonic() - lastAt >= (isNeeded() ? beatEveryMs : restingBeatEveryMs)) void beat()
  }

  return {
    beatIfDue,
    /** Must be called when the reader received this document. */
    received(id: ObjectId) {
      if (pending?.id.equals(id)) pending.isReceived = true
    },

    /**
     * Writes a beat when one is due. Returns a time: every document written before it has reached the
     * reader. Returns undefined while no such time is known. Errors: throws if the cursor has not
     * returned a confirmed beat for several seconds. The reader must then open a new cursor.
     */
    asOf() {
      if (pending?.confirmedAt !== undefined) {
        if (pending.isReceived) {
          proven = pending.startedAt
          pending = undefined
        } else if (monotonic() - pending.confirmedAt > lostAfterMs) throw new Error('the cursor is behind the primary')
      }
      beatIfDue()
      return proven
    },
  }
}
