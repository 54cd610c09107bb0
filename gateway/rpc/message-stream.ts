import { Readable } from 'node:stream'
import type { ConnectError } from '@connectrpc/connect'
import { endOfStream } from './connect-failures.ts'

/** Forwards a stream of messages from a core to a client. */
export interface MessageStream {
  /**
   * The forwarded bytes. If the core disconnects between two messages, an end frame with an error
   * follows.
   */
  readable: Readable
  /** Ends the stream after the current message, with an end frame that contains the error. */
  finish(): void
}

const HEAD_BYTES = 5
/** How long `finish` waits for the rest of the current message. */
const REST_TIMEOUT_MS = 1_000

/**
 * Forwards the frames of a Connect stream unbuffered and tracks their boundaries. If the core
 * disconnects between two frames, the client gets a valid end frame after the last complete
 * message.
 *
 * @param interruption creates the error of that end frame
 */
export function createMessageStream(source: Readable, interruption: () => ConnectError): MessageStream {
  const head = Buffer.alloc(HEAD_BYTES)
  let headBytes = 0
  /** Missing bytes of the current frame. */
  let left = 0
  let stopping = false
  const isBetween = () => left === 0 && headBytes === 0

  /**
   * Tracks the frames in `bytes`. Returns how many bytes were tracked: all, or those up to the
   * first end of a frame.
   */
  function trackFrames(bytes: Buffer, stopAtFrameEnd: boolean): number {
    let at = 0
    while (at < bytes.length) {
      if (left > 0) {
        const taken = Math.min(left, bytes.length - at)
        left -= taken
        at += taken
      } else {
        head[headBytes++] = bytes[at++]!
        if (headBytes < HEAD_BYTES) continue
        headBytes = 0
        left = head.readUInt32BE(1)
      }
      if (stopAtFrameEnd && isBetween()) break
    }
    return at
  }

  async function* frames(): AsyncGenerator<Buffer> {
    try {
      for await (const bytes of source as AsyncIterable<Buffer>) {
        yield bytes.subarray(0, trackFrames(bytes, stopping))
        if (stopping && isBetween()) break
      }
    } catch (error) {
      if (!isBetween()) throw error
      stopping = true
    }
    if (stopping) yield endOfStream(interruption())
  }

  return {
    readable: Readable.from(frames(), { objectMode: false }),
    finish() {
      stopping = true
      const stop = () => source.destroy(new Error('the gateway is stopping'))
      if (isBetween()) stop()
      else setTimeout(stop, REST_TIMEOUT_MS).unref()
    },
  }
}
