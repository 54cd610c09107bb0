import { randomUUID } from 'node:crypto'
import type { Stack } from '../support/stack.ts'
import type { Answer, Visitor } from '../support/visitor.ts'

export const LARGE = '😀'.repeat(4_000)
export const MESSAGES = 100
/** Calls that a session may make at once by its rate limits. */
const CALLS_BURST = 115
const SENDS_BURST = 10
/** Calls that an operator's page, or a service, makes at once. */
const OPERATOR_CALLS = 60

/** A request of a route, and how often a caller may make it at once. */
export type DearRequest<Caller> = [name: string, times: number, request: (caller: Caller) => Promise<Answer>]

const large = () => {
  const clientOperationId = randomUUID()
  return { clientOperationId, body: LARGE, contentType: 'text', locale: 'en' }
}

/** The most expensive request of each route that visitors call. */
export const visitorRequests: DearRequest<Visitor & { siteKey: string }>[] = [
  ['history from the start', CALLS_BURST, (visitor) => visitor.call('GET', '/messages?limit=100')],
  ['newest history', CALLS_BURST, (visitor) => visitor.call('GET', '/messages?limit=100&beforeSequence=2147483647')],
  [
    'sends',
    SENDS_BURST,
    (visitor) => {
      const body = large()
      return visitor.call('POST', '/messages', { body, headers: { 'Idempotency-Key': body.clientOperationId } })
    },
  ],
  ['typing', CALLS_BURST, (visitor) => visitor.call('POST', '/typing', { body: { state: 'started' } })],
  [
    'receipts',
    CALLS_BURST,
    (visitor) => visitor.call('POST', '/messages/receipts', { body: { upToSequence: MESSAGES, state: 'read' } }),
  ],
  [
    'page context',
    CALLS_BURST,
    (visitor) =>
      visitor.call('POST', '/context/page', {
        body: { url: `https://shop.example/?${'x'.repeat(2_000)}`, title: 'x'.repeat(500) },
        headers: { 'Idempotency-Key': randomUUID() },
      }),
  ],
  [
    'presence',
    CALLS_BURST,
    (visitor) => visitor.call('POST', '/presence', { body: { tab: randomUUID(), state: 'here' } }),
  ],
  ['configuration', 20, (visitor) => visitor.call('GET', `/config/${visitor.siteKey}`)],
  [
    'streams from the start',
    6,
    async (visitor) => {
      const stream = await visitor.openStream({ after: 0 })
      stream.close()
      return { status: stream.status, headers: stream.headers, body: undefined }
    },
  ],
]

/** A caller of the internal services, through a gateway or at a core. */
export interface OperatorCaller {
  call(method: string, message: object): Promise<Answer>
  /** Calls a method with a stream of answers. Reads up to `maxBytes` of it. */
  stream(method: string, message: object, maxBytes: number): Promise<Answer>
  workspaceId: string
  /** Session with the largest conversation. */
  session: { sessionId: string; conversationId: string }
}

/** Returns two callers: an operator with a session at a gateway, and a service with a token at a core. */
export function operatorCallers(
  { demo, gateways, cores }: Stack,
  session: OperatorCaller['session'],
): Record<string, OperatorCaller> {
  const caller = (url: string, token: string): OperatorCaller => {
    const post = (method: string, type: string, body: Buffer) =>
      fetch(`${url}/service.${method}`, {
        method: 'POST',
        headers: { 'content-type': type, authorization: `Bearer ${token}` },
        body: new Uint8Array(body),
      })
    return {
      workspaceId: demo.workspaceId,
      session,
      async call(method, message) {
        const response = await post(method, 'application/json', Buffer.from(JSON.stringify(message)))
        await response.arrayBuffer()
        return { status: response.status, headers: response.headers, body: undefined }
      },
      async stream(method, message, maxBytes) {
        const json = Buffer.from(JSON.stringify(message))
        const head = Buffer.alloc(5)
        head.writeUInt32BE(json.length, 1)
        const response = await post(method, 'application/connect+json', Buffer.concat([head, json]))
        let size = 0
        for await (const chunk of response.body ?? []) {
          size += chunk.length
          if (size >= maxBytes) break
        }
        return { status: response.status, headers: response.headers, body: undefined }
      },
    }
  }
  return {
    'an operator at a gateway': caller(`${gateways[0]!.url}/rpc`, demo.workspaceSession),
    'a service at a core': caller(cores[0]!.url, demo.serviceToken),
  }
}

/** The most expensive reads of operators and services. */
export const operatorRequests: DearRequest<OperatorCaller>[] = [
  [
    'search',
    OPERATOR_CALLS,
    ({ call, workspaceId }) =>
      call('messaging.v1.MessagingService/SearchConversations', { workspaceId, query: 'still h', limit: 50 }),
  ],
  [
    'list of conversations',
    OPERATOR_CALLS,
    ({ call, workspaceId }) => call('messaging.v1.MessagingService/ListConversations', { workspaceId, limit: 100 }),
  ],
  [
    'one conversation',
    OPERATOR_CALLS,
    ({ call, session: { conversationId } }) =>
      call('messaging.v1.MessagingService/GetConversation', { conversationId }),
  ],
  [
    'messages of a conversation',
    OPERATOR_CALLS,
    ({ call, session: { conversationId } }) =>
      call('messaging.v1.MessagingService/ListMessages', { conversationId, limit: 100 }),
  ],
  [
    'events of a conversation',
    OPERATOR_CALLS,
    ({ call, session: { conversationId } }) =>
      call('messaging.v1.MessagingService/ListConversationEvents', { conversationId, limit: 100 }),
  ],
  [
    'list of leads',
    OPERATOR_CALLS,
    ({ call, workspaceId }) => call('lead.v1.LeadService/ListLeads', { workspaceId, limit: 100 }),
  ],
  [
    'streams of the inbox',
    OPERATOR_CALLS,
    ({ stream, workspaceId }) => stream('messaging.v1.MessagingService/WatchConversations', { workspaceId }, 1_000),
  ],
]

/** The most expensive read that only services may make. */
export const serviceRequests: DearRequest<OperatorCaller>[] = [
  [
    'export of a visitor',
    OPERATOR_CALLS,
    ({ stream, session: { sessionId } }) =>
      stream('privacy.v1.PrivacyService/ExportVisitor', { visitor: { sessionId } }, Number.POSITIVE_INFINITY),
  ],
]
