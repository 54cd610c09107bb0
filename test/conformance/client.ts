import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { internals, internalWords } from '../support/leaks.ts'
import type { RunningStack } from '../support/stack.ts'
import type { Visitor } from '../support/visitor.ts'
import { type DocumentCheck, loadDocument } from './document-check.ts'
import { failures } from './failure-table.ts'

export const BASE = '/api/integrations/v1/widget'

// biome-ignore lint/suspicious/noExplicitAny: tests check the shape of bodies themselves
type Body = any

export interface Answer {
  status: number
  headers: Headers
  body: Body
  text: string
}

export interface Request {
  /** Headers to add or replace. The value null removes a default header. */
  headers?: Record<string, string | null>
  /** Text and bytes are sent unchanged. Other values are sent as JSON. */
  body?: unknown
  via?: string
}

/** Error codes and contract violations of all responses so far. The tests of rules about every response use them. */
export interface Seen {
  codes: Set<string>
  problems: string[]
}

export interface Client {
  /** Sends a valid request with the given changes. Also checks rules that hold for every response. */
  call(method: string, path: string, request?: Request): Promise<Answer>
  /** Like `call`, but expects an error with this code. Also checks the error against the table `failures`. */
  fails(code: string, method: string, path: string, request?: Request): Promise<Answer>
  visitor(): Promise<Visitor>
  seen: Seen
}

/**
 * Creates a client for visitors of one stack.
 *
 * @param send sends a request
 */
export async function createClient(stack: RunningStack, send: typeof fetch = fetch): Promise<Client> {
  const { origin } = stack.demo
  const gatewayUrl = stack.gateways[0]!.url
  const document: DocumentCheck = await loadDocument(gatewayUrl)
  const seen: Seen = { codes: new Set(), problems: [] }

  async function call(method: string, path: string, { headers = {}, body, via = gatewayUrl }: Request = {}) {
    const all: Record<string, string | null> = {
      origin,
      'x-service-widget-version': '1.0',
      ...(method === 'POST' || method === 'DELETE' ? { 'idempotency-key': randomUUID() } : {}),
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      ...headers,
    }
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    const response = await send(`${via}${BASE}${path}`, {
      method,
      headers: Object.fromEntries(Object.entries(all).filter((each): each is [string, string] => each[1] !== null)),
      body: isRaw ? (body as string) : JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = text !== '' && response.headers.get('content-type')?.startsWith('application/json')
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    }
    checkAnswer(method, path, answer)
    return answer
  }

  function checkAnswer(method: string, path: string, answer: Answer) {
    const where = `${method} ${path.split('?')[0]?.replace(/(cmd|scr)_\w+/, '…')} ${answer.status} ${answer.body?.code ?? ''}`
    const found = document.problems(method, `${BASE}${path.split('?')[0]}`, answer)
    seen.problems.push(...found.map((problem) => `${where}: ${problem}`))
    if (!answer.headers.get('x-correlation-id')) seen.problems.push(`${where}: no X-Correlation-Id`)
    if (answer.status < 400) return
    seen.codes.add(answer.body?.code)
    if (internals.test(answer.text) || internalWords.test(answer.text))
      seen.problems.push(`${where}: reveals ${answer.text}`)
  }

  return {
    call,
    seen,
    async fails(code, method, path, request) {
      let answer = await call(method, path, request)
      // Retries after other retryable errors, which a busy machine may cause.
      for (let times = 0; answer.body?.retryable && answer.body.code !== code && times < 10; times += 1)
        answer = await call(method, path, request)
      // Removes credentials from the comparison. If the request wrongly succeeds, the failure
      // message must not print them.
      const { correlationId, retryAfter, issues, accessGrant: _, renewalToken: __, ...rest } = answer.body ?? {}
      const [status, retryable, terminal] = failures[code]!
      expect({ status: answer.status, ...rest }).toEqual({ status, code, retryable, terminal })
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(correlationId).toBe(answer.headers.get('x-correlation-id'))
      expect(issues !== undefined).toBe(['ValidationFailed', 'IdentityAssertionInvalid'].includes(code))
      const hasRetryAfter = code === 'RateLimited' || status === 503 || code === 'OperationInProgress'
      expect(retryAfter !== undefined).toBe(hasRetryAfter)
      const header = answer.headers.get('retry-after')
      expect(header).toBe(status === 429 || status === 503 ? String(retryAfter) : null)
      expect(answer.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)
      const cors = answer.headers.get('access-control-allow-origin')
      const hasCors = code !== 'OriginNotAllowed' && code !== 'InternalError'
      if (hasCors) expect(cors).toBe(request?.headers?.origin ?? origin)
      return answer
    },
    visitor: () => stack.newVisitor(),
  }
}

export const bearer = (visitor: Visitor) => ({ authorization: `Bearer ${visitor.session.accessGrant}` })

export const message = (clientOperationId: string, more: object = {}) => ({
  clientOperationId,
  body: 'Hello',
  contentType: 'text',
  ...more,
})
