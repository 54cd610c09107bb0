import type { DocumentCheck } from '../conformance/document-check.ts'
import { internals } from '../support/leaks.ts'
import type { RawAnswer, RawRequest } from './raw-client.ts'
import type { RpcAnswer, RpcRequest } from './rpc-client.ts'

/** Lists how a gateway's response violates the contract. The list is empty if the response is valid. */
export function routeProblems(request: RawRequest, answer: RawAnswer, document: DocumentCheck): string[] {
  const { status, headers, rest } = answer
  const text = answer.body.toString('utf8')
  const problems: string[] = []
  if (status >= 500 || status < 200) problems.push(`status ${status}`)
  if (rest.length > 0) problems.push('a second answer follows')
  if (!headers.get('x-correlation-id')) problems.push('no X-Correlation-Id')
  if (internals.test(text) && !isPage(request)) problems.push(`reveals ${text.slice(0, 200)}`)
  if (request.method === 'HEAD' || headers.get('content-type')?.startsWith('text/event-stream')) return problems

  const body = readJson(headers, text)
  if (body instanceof SyntaxError) return [...problems, 'invalid JSON']
  if (status >= 400) problems.push(...envelopeProblems(body, headers))
  // If the HTTP parser rejected the request, no route answered, so the API document does not apply.
  if (isMalformed(body)) return problems
  const path = request.target.split('?')[0]!
  return [...problems, ...document.problems(request.method, path, { status, headers, body })]
}

/**
 * Returns true for documentation, the console and the widget. Their files may contain words that match `internals`.
 */
const isPage = ({ target }: RawRequest) => /^\/(docs|console|widget)/.test(target)

function readJson(headers: Headers, text: string): unknown {
  if (text === '' || !headers.get('content-type')?.startsWith('application/json')) return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    return error
  }
}

const envelopeKeys = new Set(['code', 'retryable', 'terminal', 'retryAfter', 'correlationId', 'issues'])

function envelopeProblems(body: unknown, headers: Headers): string[] {
  if (typeof body !== 'object' || body === null) return ['a failure without an envelope']
  const given = body as Record<string, unknown>
  const extra = Object.keys(given).filter((key) => !envelopeKeys.has(key))
  const problems = extra.map((key) => `the envelope has ${key}`)
  if (typeof given.code !== 'string' || typeof given.retryable !== 'boolean' || typeof given.terminal !== 'boolean')
    problems.push('the envelope is incomplete')
  if (given.correlationId !== headers.get('x-correlation-id'))
    problems.push('different correlation ids in body and header')
  return problems
}

/** Returns true if the gateway rejected the request before routing, because of its HTTP syntax, URL or headers. */
function isMalformed(body: unknown): boolean {
  const { issues } = (body ?? {}) as { issues?: { path: string; rule: string }[] }
  return (
    issues?.length === 1 && issues[0]!.path === '' && ['http', 'url', 'headerSize', 'timeout'].includes(issues[0]!.rule)
  )
}

/**
 * Messages of Connect and gRPC about invalid frames. Responses with these messages have the protocol's own error
 * codes instead of public codes. This is allowed, because only callers with a valid token get them.
 */
const protocolErrors =
  /parse binary|compressed envelope|protocol error|protocol%20error|parse%20binary|compressed%20envelope/
const serverErrorCodes = new Set(['internal', 'unknown', 'data_loss', 'unavailable'])
const serverErrorGrpcStatuses = new Set(['2', '13', '14', '15'])
/** Allowed HTTP statuses of Connect, gRPC and gRPC-Web, including statuses for an invalid protocol or method. */
const httpStatuses = new Set([200, 400, 401, 403, 404, 405, 408, 409, 412, 415, 429, 499, 501, 504, 505])

/** Lists how a core's response violates the protocol. The list is empty if the response is valid. */
export function rpcProblems({ status, headers, trailers, body }: RpcAnswer): string[] {
  const text = body.toString('utf8') + (trailers['grpc-message'] ?? headers['grpc-message'] ?? '')
  if (protocolErrors.test(text)) return []
  const problems = httpStatuses.has(status) ? [] : [`status ${status}`]
  if (internals.test(text)) problems.push(`reveals ${text.slice(0, 200)}`)
  const code = /"code":"(\w+)","message"|"error":\{"code":"(\w+)"/.exec(text)
  const named = code?.[1] ?? code?.[2]
  if (named !== undefined && serverErrorCodes.has(named)) problems.push(`answers ${named}: ${text.slice(0, 300)}`)
  const grpc = trailers['grpc-status'] ?? headers['grpc-status'] ?? /grpc-status: ?(\d+)/i.exec(text)?.[1]
  if (grpc !== undefined && serverErrorGrpcStatuses.has(grpc))
    problems.push(`answers gRPC status ${grpc}: ${text.slice(-300)}`)
  return problems
}

/**
 * Lists the problems of a call that the core reset. A reset is allowed only for gRPC calls with JSON. gRPC sends the
 * error message in a header, and a header cannot contain a lone surrogate from the invalid JSON.
 */
export function resetProblems({ headers }: RpcRequest, error: Error): string[] {
  const inHeader = /^application\/grpc(-web)?\+json/.test(headers['content-type'] ?? '')
  return inHeader && error.message.includes('NGHTTP2_INTERNAL_ERROR') ? [] : [error.message]
}
