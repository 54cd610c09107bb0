import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerResponse } from 'node:http2'

export type Response = ServerResponse | Http2ServerResponse

/** Memory in bytes that one call is counted with, in addition to its messages. */
const callBytes = 4 * 1024
/** Memory in bytes for the calls of a core and their messages. */
const defaultMaxBytes = 256 * 1024 * 1024
/** Time in milliseconds within which a caller must send its message. */
const transferMs = 30_000

/** A call whose memory is counted until its response has closed. */
export type CountedCall = NonNullable<ReturnType<CallMemory['open']>>

/**
 * Limits the memory that callers can occupy by calls and their messages. The listener limits the
 * memory of unread answers.
 */
export type CallMemory = ReturnType<typeof createCallMemory>

export function createCallMemory({ maxBytes = defaultMaxBytes, timeoutMs = transferMs } = {}) {
  let used = 0
  return {
    /** Counts a call. Returns undefined if the memory is used up. */
    open(response: Response) {
      if (used + callBytes > maxBytes) return undefined
      let reserved = callBytes
      let timer: NodeJS.Timeout | undefined
      used += reserved
      response.once('close', () => {
        used -= reserved
        reserved = 0
        clearTimeout(timer)
        if (!('stream' in response)) closeUnlessComplete(response.req, timeoutMs)
      })
      return {
        /** Counts the bytes. Returns false if the memory is used up. */
        reserve(bytes: number) {
          // After the response has closed, nothing would release the bytes.
          if (reserved === 0 || used + bytes > maxBytes) return false
          used += bytes
          reserved += bytes
          return true
        },
        /** Stops counting bytes before the response has closed. */
        release(bytes: number) {
          const released = Math.min(bytes, reserved)
          used -= released
          reserved -= released
        },
        /** Closes the connection or HTTP/2 stream if the returned function is not called in time. */
        expectProgress() {
          clearTimeout(timer)
          timer = setTimeout(() => abortResponse(response), timeoutMs).unref()
          return () => clearTimeout(timer)
        },
      }
    },
  }
}

/** Closes an answered caller's connection if the rest of its message, which is dropped, does not arrive. */
function closeUnlessComplete(request: IncomingMessage, timeoutMs: number): void {
  if (request.complete || request.destroyed) return
  const timer = setTimeout(() => request.socket.destroy(), timeoutMs).unref()
  request.once('close', () => clearTimeout(timer))
}

/** Closes the connection of a call, or its HTTP/2 stream. */
export function abortResponse(response: Response): void {
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR)
  else response.destroy()
}
