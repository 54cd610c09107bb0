import { randomUUID } from 'node:crypto'
import { type HttpAnswer, type HttpConnection, openConnection } from './http-connection.ts'

/** A visitor with a session at the gateway. */
export interface BenchVisitor {
  sessionId: string
  conversationId: string
  accessGrant: string
}

export const widgetPath = '/api/integrations/v1/widget'
export const pageHeaders = { Origin: 'http://localhost:8081', 'X-Service-Widget-Version': '1.0' }
const json = { 'Content-Type': 'application/json' }
const text = 'Do you ship to Graz? I would like to have it there by Friday.'

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

/** Posts as a visitor, or as a page without a session, with a new key. Throws if the status is another. */
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

/** Creates visitors of an installation. */
export async function createVisitors(port: number, siteKey: string, count: number): Promise<BenchVisitor[]> {
  const visitors: BenchVisitor[] = []
  await inLanes(port, Array.from({ length: count }), async (on) => {
    const body = { publicSiteKey: siteKey, clientInstanceId: randomUUID() }
    visitors.push(JSON.parse((await postAs(on, undefined, 201, '/sessions', body)).body))
  })
  return visitors
}

/** Sends one message as a new operation. */
export async function sendMessage(on: HttpConnection, visitor: BenchVisitor, body = text): Promise<void> {
  const clientOperationId = randomUUID()
  await postAs(on, visitor, 202, '/messages', { clientOperationId, body, contentType: 'text' }, clientOperationId)
}

export interface HistoryPage {
  messages: { sequence: number }[]
  lastSequence: number
}

export async function readHistory(on: HttpConnection, visitor: BenchVisitor, query: string): Promise<HistoryPage> {
  const headers = { ...pageHeaders, Authorization: `Bearer ${visitor.accessGrant}` }
  const { body } = await expectStatus(200, on.send('GET', `${widgetPath}/messages?${query}`, headers))
  return JSON.parse(body)
}
