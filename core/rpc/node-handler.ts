import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import type { Logger } from 'pino'

type Request = IncomingMessage | Http2ServerRequest
type Response = ServerResponse | Http2ServerResponse

/**
 * Answers a router's calls on Node's servers. Connect's own adapter does the same, but where an answer cannot be written
 * (an error's text that its protocol cannot carry) it leaves the caller waiting and prints what was sent.
 *
 * @param fallback answers every other path
 */
export function createNodeHandler(
  { handlers }: ConnectRouter,
  logger: Logger,
  fallback: (request: Request, response: Response) => unknown,
) {
  const byPath = new Map(handlers.map((handler) => [handler.requestPath, handler]))

  return async (request: Request, response: Response): Promise<void> => {
    const handler = byPath.get(request.url?.split('?', 1)[0] ?? '')
    if (handler === undefined) return void fallback(request, response)
    try {
      const answer = await handler(universalRequestFromNodeRequest(request, response, undefined, undefined))
      await universalResponseToNodeResponse(answer, response)
    } catch (error) {
      breakOff(response)
      if (ConnectError.from(error).code === Code.Aborted) return
      logger.error({ procedure: handler.requestPath, type: (error as Error).name }, 'answer failed')
    }
  }
}

function breakOff(response: Response): void {
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR)
  else response.destroy()
}
