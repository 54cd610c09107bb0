/** Maximum size of one message in bytes, over a link and over HTTP. */
export const messageMaxBytes = 16 * 1024 * 1024
/** Size in bytes from which a message is cut into parts, so that it does not delay small messages. */
const partMaxBytes = 64 * 1024
const batchMaxBytes = 256 * 1024
const batchMaxFrames = 1_000

/** Frames that wait to be sent on one side of a link. */
export interface FrameQueue<Frame> {
  /** Queues the frame that `toFrame` makes of the bytes. The bytes of a large frame are sent in parts. */
  push(id: number, bytes: Uint8Array, toFrame: (bytes: Uint8Array) => Frame): void
  /** Removes the queued frame of a call. Returns true if nothing of the frame was sent. */
  remove(id: number): boolean
  /** Returns the number of queued bytes. */
  queuedBytes(): number
  /**
   * Yields the frames that became ready in one turn of the event loop. After a call of `end`, yields
   * the queued frames and ends.
   */
  batches(): AsyncGenerator<Frame[]>
  /** Ends `batches` after the queued frames. */
  end(): void
}

interface Queued<Frame> {
  bytes: Uint8Array
  toFrame(bytes: Uint8Array): Frame
  isBegun: boolean
}

const noBytes = new Uint8Array()

/**
 * Creates a queue that sends small frames first and, in each batch, one part of one large frame. The
 * large frames take turns.
 */
export function createFrameQueue<Frame>(toPart: (id: number, bytes: Uint8Array) => Frame): FrameQueue<Frame> {
  const small = new Map<number, Queued<Frame>>()
  const large = new Map<number, Queued<Frame>>()
  let size = 0
  let isEnded = false
  let wake: (() => void) | undefined

  function notify() {
    const resume = wake
    wake = undefined
    if (resume) setImmediate(resume)
  }

  function take(): Frame[] {
    const frames: Frame[] = []
    let taken = 0
    for (const [id, { bytes, toFrame }] of small) {
      if (taken >= batchMaxBytes || frames.length >= batchMaxFrames) break
      small.delete(id)
      frames.push(toFrame(bytes))
      taken += bytes.length
    }
    const [next] = large
    if (next) {
      const [id, { bytes, toFrame }] = next
      large.delete(id)
      const rest = bytes.subarray(partMaxBytes)
      taken += bytes.length - rest.length
      if (rest.length === 0) frames.push(toFrame(bytes))
      else {
        frames.push(toPart(id, bytes.subarray(0, partMaxBytes)))
        large.set(id, { bytes: rest, toFrame, isBegun: true })
      }
    }
    size -= taken
    return frames
  }

  return {
    push(id, bytes, toFrame) {
      const queue = bytes.length > partMaxBytes ? large : small
      queue.set(id, { bytes, toFrame, isBegun: false })
      size += bytes.length
      notify()
    },

    remove(id) {
      const found = small.get(id) ?? large.get(id)
      if (!found) return false
      small.delete(id)
      large.delete(id)
      size -= found.bytes.length
      return !found.isBegun
    },

    queuedBytes: () => size,

    async *batches() {
      for (;;) {
        if (small.size + large.size > 0) yield take()
        else if (isEnded) return
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    },

    end() {
      isEnded = true
      notify()
    },
  }
}

/** Joins the parts of a message. */
export function joinParts(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? (parts[0] ?? noBytes) : Buffer.concat(parts)
}
