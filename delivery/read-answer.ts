import type { Client, Dispatcher } from 'undici'
import type { ClaimedDelivery } from '#proto/lead/v1/delivery_pb.js'

/** What a destination answered; its body is not kept. */
export interface WholeAnswer {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** False where more than was to be read of it was left unread. */
  isWhole: boolean
}

/** Never the core's to say: they follow from the URL and the body. */
const ownHeaders = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'expect', 'upgrade'])

/**
 * One POST over a connection, answered once its body has ended or `maxBytes` of it were read. The body is counted as it comes, since
 * the streams that `Client.request` makes of it cost as much as the rest of the request. Errors: undici's; the reason of the signal.
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

    const stop = () => controller?.abort(signal.reason)
    signal.addEventListener('abort', stop, { once: true })

    client.dispatch(
      { method: 'POST', path, headers: headersOf(request), body: request.body },
      {
        onRequestStart(started) {
          controller = started
          if (signal.aborted) stop()
        },
        onResponseStart(_, status, headers) {
          // What comes before the answer, such as early hints.
          if (status < 200) return
          answer = { status, headers, isWhole: true }
          onHeaders()
        },
        onResponseData(started, chunk) {
          read += chunk.length
          if (read <= maxBytes || !answer) return
          resolve({ ...answer, isWhole: false })
          started.abort(new Error('the answer is too long'))
        },
        onResponseEnd() {
          signal.removeEventListener('abort', stop)
          if (answer) resolve(answer)
        },
        onResponseError(_, error) {
          signal.removeEventListener('abort', stop)
          reject(error)
        },
      },
    )
  })
}

/** Names and values in turn, as undici reads them fastest. */
function headersOf({ headers }: Pick<ClaimedDelivery, 'headers'>): string[] {
  return Object.entries(headers).flatMap((header) => (ownHeaders.has(header[0].toLowerCase()) ? [] : header))
}
