/** Shows how far the cursor of a reader is behind the primary of the replica set. */
export interface PrimaryProof {
  /** Must be called when the reader received this document. */
  received(id: string): void
  /**
   * Returns a time: every document written before it has reached the reader. Returns undefined
   * while no such time is known.
   */
  asOf(): number | undefined
}

const readEveryMs = 150
/**
 * After this time in milliseconds without proof, the reader must open a new cursor. Its server is
 * then probably not the primary.
 */
const lostAfterMs = 5_000

/**
 * Finds out up to which time a tailable cursor has returned every document. An empty result of the
 * cursor is no proof. The server of the cursor may no longer be the primary, or may be cut off from
 * the other servers. It may not have detected this yet. So `readNewest` reads the newest document
 * with a linearizable read, which a majority of the servers confirms. Once the cursor has returned
 * that document, it has returned everything that was written before the read began. Errors: `asOf`
 * throws if the cursor has been behind for several seconds. The reader must then open a new cursor.
 */
export function createPrimaryProof(readNewest: () => Promise<string>, monotonic: () => number): PrimaryProof {
  const createdAt = monotonic()
  let proven: number | undefined
  let lastReceived = ''
  /**
   * The pending read: its result, and the documents that the reader received since the read began.
   */
  let pendingRead: { startedAt: number; newest?: string; received: Set<string> } | undefined
  let nextReadAt = Number.NEGATIVE_INFINITY

  async function startRead() {
    const read: NonNullable<typeof pendingRead> = { startedAt: monotonic(), received: new Set([lastReceived]) }
    pendingRead = read
    nextReadAt = read.startedAt + readEveryMs
    try {
      read.newest = await readNewest()
    } catch {
      // The next call of `asOf` reads again. Until then nothing is proven.
      pendingRead = undefined
    }
  }

  return {
    received(id) {
      lastReceived = id
      pendingRead?.received.add(id)
    },

    asOf() {
      if (pendingRead?.newest !== undefined && pendingRead.received.has(pendingRead.newest)) {
        proven = pendingRead.startedAt
        pendingRead = undefined
      }
      if (!pendingRead && monotonic() >= nextReadAt) void startRead()
      if (monotonic() - (proven ?? createdAt) > lostAfterMs) throw new Error('the cursor is behind the primary')
      return proven
    },
  }
}
