import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerResponse } from 'node:http2'

export type Response = ServerResponse | Http2ServerResponse

/** Memory that is counted for a call, in addition to its messages. */
const callBytes = 4 * 1024
const defaultMaxBytes = 256 * 1024 * 1024
/** The time within which a caller must send its message. */
const transferMs = 30_000

/** A call whose memory is counted until its response has closed. */
export type CountedCall = NonNullable<ReturnType<CallMemory['open']>>

/** Limits the memory of calls and their messages. The listener limits that of unread answers. */
export type CallMemory = ReturnType<typeof createCallMemory>

export function createCallMemory({ maxBytes = defaultMaxBytes, timeoutMs = transferMs } = {}) {
  let used = 0
  return {
    /** Returns undefined if the memory is used up. */
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
        /** Returns false if the memory is used up. */
        reserve(bytes: number) {
          // After the response has closed, nothing would release the bytes.
          if (reserved === 0 || used + bytes > maxBytes) return false
          used += bytes
          reserved += bytes
          return true
        },
        release(bytes: number) {
          const released = Math.min(bytes, reserved)
          used -= released
          reserved -= released
        },
        /** Aborts the response unless the returned function is called in time. */
        expectProgress() {
          clearTimeout(timer)
          timer = setTimeout(() => abortResponse(response), timeoutMs).unref()
          return () => clearTimeout(timer)
        },
      }
    },
  }
}

/** Closes the connection if the rest of a dropped message does not arrive. */
function closeUnlessComplete(request: IncomingMessage, timeoutMs: number): void {
  if (request.complete || request.destroyed) return
  const timer = setTimeout(() => request.socket.destroy(), timeoutMs).unref()
  request.once('close', () => clearTimeout(timer))
}

export function abortResponse(response: Response): void {
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR)
  else response.destroy()
}
