import type { Client, Dispatcher } from 'undici'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'

/** Status and headers of a destination's response. */
interface WholeAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** False if the body was longer than `maxBytes`. */
  isWhole: boolean
  /** Beginning of the body of an answer that is not 2xx, in pieces. */
  beginning: Buffer[]
}

/**
 * Headers that the worker sets itself from URL and body. The core's values for them are dropped.
 */
const ownHeaders = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'expect', 'upgrade'])

/** Bytes of an answer that are kept, at least. 300 characters have at most 1,200. */
const keptBytes = 1_200

/**
 * Sends one POST. Resolves when the response body has ended or `maxBytes` of it were read. Uses
 * `Client.dispatch`, because the streams of `Client.request` cost as much CPU time as the rest of
 * the request. Errors: the errors of undici, and the reason of the signal.
 */
export function readAnswer(
  client: Client,
  options: {
    path: string
    request: Pick<ClaimedDelivery, 'headers' | 'body'>
    signal: AbortSignal
    maxBytes: number
    onHeaders: () => void
  },
): Promise<WholeAnswer> {
  const { path, request, signal, maxBytes, onHeaders } = options
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined
    let answer: WholeAnswer | undefined
    let read = 0

    const abort = () => controller?.abort(signal.reason)
    signal.addEventListener('abort', abort, { once: true })

    client.dispatch(
      { method: 'POST', path, headers: headersOf(request), body: request.body },
      {
        onRequestStart(started) {
          controller = started
          if (signal.aborted) abort()
        },
        onResponseStart(_, status, headers) {
          // Ignores interim responses such as 103 (Early Hints).
          if (status < 200) return
          answer = { status, headers, isWhole: true, beginning: [] }
          onHeaders()
        },
        onResponseData(started, chunk) {
          if (answer && answer.status >= 300 && read < keptBytes) answer.beginning.push(Buffer.from(chunk))
          read += chunk.length
          if (read <= maxBytes || !answer) return
          resolve({ ...answer, isWhole: false })
          started.abort(new Error('answer too long'))
        },
        onResponseEnd() {
          signal.removeEventListener('abort', abort)
          if (answer) resolve(answer)
        },
        onResponseError(_, error) {
          signal.removeEventListener('abort', abort)
          reject(error)
        },
      },
    )
  })
}

/** The delivery's headers as alternating names and values, which is the fastest form for undici. */
function headersOf({ headers }: Pick<ClaimedDelivery, 'headers'>): string[] {
  return Object.entries(headers).flatMap((header) => (ownHeaders.has(header[0].toLowerCase()) ? [] : header))
}
