import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect'
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node'
import type { Logger } from 'pino'
import { checkJsonRequest } from './json-requests.ts'

type Request = IncomingMessage | Http2ServerRequest
type Response = ServerResponse | Http2ServerResponse

/**
 * Serves a router's calls on Node's servers, like Connect's own adapter. Some responses cannot be
 * written, for example because the protocol cannot encode an error text. Connect's adapter then
 * leaves the caller waiting and prints the request. This handler closes the connection instead.
 *
 * @param fallback serves every other path
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
      const call = universalRequestFromNodeRequest(request, response, undefined, undefined)
      const answer = await handler(checkJsonRequest(handler.method, call))
      await universalResponseToNodeResponse(answer, response)
    } catch (error) {
      abortResponse(response)
      if (ConnectError.from(error).code === Code.Aborted) return
      logger.error(
        { procedure: handler.requestPath, type: (error as Error).name },
        'writing the response failed; connection closed',
      )
    }
  }
}

function abortResponse(response: Response): void {
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR)
  else response.destroy()
}
