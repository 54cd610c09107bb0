import { Readable } from 'node:stream'
import type { ConnectError } from '@connectrpc/connect'
import { endOfStream } from './connect-failures.ts'

/** A core's stream of messages on its way to a reader. */
export interface MessageStream {
  /** The bytes as they come; where the core breaks off between two messages, an end that says so. */
  readable: Readable
  /** Ends it after the message that is under way, with an end that says why. */
  finish(): void
}

const HEAD_BYTES = 5
/** How long a message that is under way has to come to its end. */
const REST_WITHIN_MS = 1_000

/**
 * Passes the frames of a Connect stream on, unbuffered, and knows where one ends: so that a stream that is cut short still
 * ends as the protocol wants it, and its reader knows that nothing but the rest is missing.
 *
 * @param cutShort what the end says then
 */
export function createMessageStream(source: Readable, cutShort: () => ConnectError): MessageStream {
  const head = Buffer.alloc(HEAD_BYTES)
  let headBytes = 0
  /** Of the frame that is under way. */
  let left = 0
  let stopping = false
  const isBetween = () => left === 0 && headBytes === 0

  /** Follows the frames up to the end of the bytes, or to the first end of a frame; how far that is. */
  function follow(bytes: Buffer, toFirstEnd: boolean): number {
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
      if (toFirstEnd && isBetween()) break
    }
    return at
  }

  async function* frames(): AsyncGenerator<Buffer> {
    try {
      for await (const bytes of source as AsyncIterable<Buffer>) {
        yield bytes.subarray(0, follow(bytes, stopping))
        if (stopping && isBetween()) break
      }
    } catch (error) {
      if (!isBetween()) throw error
      stopping = true
    }
    if (stopping) yield endOfStream(cutShort())
  }

  return {
    readable: Readable.from(frames(), { objectMode: false }),
    finish() {
      stopping = true
      const stop = () => source.destroy(new Error('the gateway stops'))
      if (isBetween()) stop()
      else setTimeout(stop, REST_WITHIN_MS).unref()
    },
  }
}
