import { ObjectId } from 'mongodb'

/** Milliseconds between two beats while somebody needs the proof. */
export const beatEveryMs = 250
/** Milliseconds between two beats otherwise. They tell the other cores that this one lives. */
const restingBeatEveryMs = 25_000
/** Milliseconds after which a cursor that lacks a confirmed beat is probably not on the primary. */
const lostAfterMs = 5_000

/**
 * Finds out up to which time a tailable cursor has returned every document. An empty result is no proof:
 * the server of the cursor may be cut off, or no longer the primary, and not know it yet. So the reader
 * writes a beat: a document that a majority of the servers must confirm. When it is confirmed and the
 * cursor has returned it, the cursor has also returned everything that was written before. While no
 * majority confirms beats, the time does not change and the cursor is kept.
 *
 * `writeBeat` must not be retried after a failure. A retry on a new primary could confirm a beat
 * that the cursor has received from the former primary.
 */
export function createCursorProof(
  writeBeat: (id: ObjectId) => Promise<unknown>,
  monotonic: () => number,
  isNeeded: () => boolean,
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
      // The outcome is unknown, so the beat proves nothing.
      pending = undefined
    }
  }

  function beatIfDue() {
    if (!pending && monotonic() - lastAt >= (isNeeded() ? beatEveryMs : restingBeatEveryMs)) void beat()
  }

  return {
    beatIfDue,
    received(id: ObjectId) {
      if (pending?.id.equals(id)) pending.isReceived = true
    },

    /**
     * Writes a beat if one is due. Returns the time before which every document has reached the reader;
     * undefined while it is unknown. Throws if the reader must open a new cursor.
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
