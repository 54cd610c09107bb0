import { randomUUID } from 'node:crypto'
import { type HttpConnection, openConnection } from './http-connection.ts'

/** A visitor with a session at the gateway. */
export interface BenchVisitor {
  sessionId: string
  conversationId: string
  accessGrant: string
}

export const widgetPath = '/api/integrations/v1/widget'
const page = { Origin: 'http://localhost:8081', 'X-Service-Widget-Version': '1.0' }
const json = { 'Content-Type': 'application/json' }
const atOnce = 16

export const pageHeaders = page
export const eventsPath = `${widgetPath}/events`

/** Creates visitors of the demo installation. Throws on an unexpected status. */
export async function createVisitors(port: number, count: number): Promise<BenchVisitor[]> {
  const visitors: BenchVisitor[] = []
  let begun = 0
  const lane = async () => {
    const connection = await openConnection(port)
    while (begun < count) {
      begun += 1
      const id = randomUUID()
      const body = JSON.stringify({ publicSiteKey: 'pk_demo', clientInstanceId: id })
      const answer = await connection.send(
        'POST',
        `${widgetPath}/sessions`,
        { ...page, ...json, 'Idempotency-Key': id },
        body,
      )
      if (answer.status !== 201) throw new Error(`creating the session failed: ${answer.status} ${answer.body}`)
      visitors.push(JSON.parse(answer.body) as BenchVisitor)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, lane))
  return visitors
}

const text = 'Do you ship to Graz? I would like to have it there by Friday.'

/** Sends one message as a new operation. Throws if the status is not 202. */
export async function sendMessage(connection: HttpConnection, { accessGrant }: BenchVisitor): Promise<void> {
  const operation = randomUUID()
  const headers = { ...page, ...json, Authorization: `Bearer ${accessGrant}`, 'Idempotency-Key': operation }
  const body = JSON.stringify({ clientOperationId: operation, body: text, contentType: 'text' })
  const answer = await connection.send('POST', `${widgetPath}/messages`, headers, body)
  if (answer.status !== 202) throw new Error(`the message was not accepted: ${answer.status} ${answer.body}`)
}

export interface HistoryPage {
  messages: { sequence: number }[]
  lastSequence: number
}

/** Reads a page of the history. Throws if the status is not 200. */
export async function readHistory(
  connection: HttpConnection,
  { accessGrant }: BenchVisitor,
  query = '',
): Promise<HistoryPage> {
  const answer = await connection.send('GET', `${widgetPath}/messages?${query}`, {
    ...page,
    Authorization: `Bearer ${accessGrant}`,
  })
  if (answer.status !== 200) throw new Error(`reading the history failed: ${answer.status} ${answer.body}`)
  return JSON.parse(answer.body) as HistoryPage
}
