import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'

export interface BenchVisitor {
  sessionId: string
  conversationId: string
  accessGrant: string
}

export const widgetPath = '/api/integrations/v1/widget'
export const pageHeaders = { Origin: 'http://localhost:8081', 'X-Service-Widget-Version': '1.0' }
export const json = { 'Content-Type': 'application/json' }
export const text = 'Do you ship to Graz? I would like to have it there by Friday.'

/** Works on all items in lanes, each with a connection of its own. */
export async function inLanes<Item>(
  port: number,
  items: Item[],
  work: (on: HttpConnection, item: Item) => Promise<unknown>,
  lanes = 16,
): Promise<void> {
  let next = 0
  const lane = async () => {
    const connection = await openConnection(port)
    while (next < items.length) await work(connection, items[next++]!)
    connection.close()
  }
  await Promise.all(Array.from({ length: Math.min(lanes, items.length) }, lane))
}

export async function expectStatus(status: number, sent: Promise<HttpAnswer>): Promise<HttpAnswer> {
  const answer = await sent
  if (answer.status !== status) throw new Error(`unexpected answer: ${answer.status} ${answer.body}`)
  return answer
}

/** Posts as a visitor, or without a session. Throws if the status is another. */
export function postAs(
  on: HttpConnection,
  visitor: BenchVisitor | undefined,
  status: number,
  path: string,
  body: object,
  key = randomUUID() as string,
): Promise<HttpAnswer> {
  const grant = visitor && { Authorization: `Bearer ${visitor.accessGrant}` }
  const headers = { ...pageHeaders, ...json, ...grant, 'Idempotency-Key': key }
  return expectStatus(status, on.send('POST', `${widgetPath}${path}`, headers, JSON.stringify(body)))
}

export async function createVisitors(port: number, siteKey: string, count: number): Promise<BenchVisitor[]> {
  const visitors: BenchVisitor[] = []
  await inLanes(port, Array.from({ length: count }), async (on) => {
    const body = { publicSiteKey: siteKey, clientInstanceId: randomUUID() }
    visitors.push(JSON.parse((await postAs(on, undefined, 201, '/sessions', body)).body))
  })
  return visitors
}

export async function sendMessage(on: HttpConnection, visitor: BenchVisitor, body = text): Promise<void> {
  const clientOperationId = randomUUID()
  await postAs(on, visitor, 202, '/messages', { clientOperationId, body, contentType: 'text' }, clientOperationId)
}

export function readHistory(on: HttpConnection, visitor: BenchVisitor, query: string): Promise<HttpAnswer> {
  const headers = { ...pageHeaders, Authorization: `Bearer ${visitor.accessGrant}` }
  return expectStatus(200, on.send('GET', `${widgetPath}/messages?${query}`, headers))
}

export interface HttpAnswer {
  status: number
  body: string
}

/** A connection for one request at a time, which uses little processor time. */
export type HttpConnection = Awaited<ReturnType<typeof openConnection>>

const endOfHead = Buffer.from('\r\n\r\n')

export async function openConnection(port: number) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let received: Buffer = Buffer.alloc(0)
  let waiting: PromiseWithResolvers<HttpAnswer> | undefined

  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const bodyAt = received.indexOf(endOfHead) + endOfHead.length
    if (bodyAt < endOfHead.length) return
    const head = received.toString('latin1', 0, bodyAt)
    const status = Number(head.slice(9, 12))
    const length = status === 204 ? '0' : /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined) return fail(new Error(`answer ${status} without Content-Length`))
    const end = bodyAt + Number(length)
    if (received.length < end) return
    const answer = { status, body: received.toString('utf8', bodyAt, end) }
    received = received.subarray(end)
    waiting?.resolve(answer)
  })
  const fail = (error: Error) => {
    waiting?.reject(error)
    socket.destroy()
  }
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('connection closed')))

  return {
    /** Rejects if the connection closes or the response has no Content-Length. */
    async send(method: string, path: string, headers: Record<string, string>, body = '') {
      if (socket.destroyed) throw new Error('connection closed')
      waiting = Promise.withResolvers<HttpAnswer>()
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
      const length = method === 'GET' ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
      socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${lines.join('')}${length}\r\n${body}`)
      return waiting.promise
    },
    close: () => socket.destroy(),
  }
}
