/** Measures how far a reader of a collection is behind the primary of the replica set. */
export interface PrimaryProof {
  /** The reader received this document. */
  received(id: string): void
  /** The reader has every document written before this time; undefined while that is unknown. */
  asOf(): number | undefined
}

const readEveryMs = 150
/** A reader further behind than this follows a server that is no longer the primary. */
const lostAfterMs = 5_000

/**
 * A cursor survives when its server stops being the primary. A primary that is cut off from the
 * others still answers for some seconds. So an empty answer does not prove that nothing new was
 * written. `readNewest` therefore reads the newest document with a linearizable read, which a
 * majority confirms. Once the reader has received that document, it is as current as that read.
 *
 * Errors of `asOf`: the reader has been behind for several seconds and must open a new cursor.
 */
export function createPrimaryProof(readNewest: () => Promise<string>, monotonic: () => number): PrimaryProof {
  const createdAt = monotonic()
  let proven: number | undefined
  let lastReceived = ''
  /** The read under way: its result and the documents received since it began. */
  let pendingRead: { startedAt: number; newest?: string; received: Set<string> } | undefined
  let nextReadAt = Number.NEGATIVE_INFINITY

  async function startRead() {
    const read: NonNullable<typeof pendingRead> = { startedAt: monotonic(), received: new Set([lastReceived]) }
    pendingRead = read
    nextReadAt = read.startedAt + readEveryMs
    try {
      read.newest = await readNewest()
    } catch {
      // The next call retries; nothing is proven until then.
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
