// Publisher process for a plain HTTP server: POST /pub/<channel> with events in the service's
// format.
import { Pool } from 'undici'
import { publishWith } from './publishing.ts'

const [port = ''] = process.argv.slice(2)
const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 32, pipelining: 1 })

publishWith(async (channel, operation, body) => {
  const occurredAt = new Date().toISOString()
  const author = { kind: 'agent', displayName: 'Ada' }
  const message = {
    ...{ messageId: `msg_${operation}`, conversationId: channel, sequence: 1, author, body },
    ...{ contentType: 'text', state: 'sent', createdAt: occurredAt },
  }
  const event = { sequence: 1, type: 'message.received', occurredAt, data: { message } }
  const { statusCode, body: answer } = await pool.request({
    path: `/pub/${channel}`,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-eventsource-event': 'message.received' },
    body: JSON.stringify(event),
  })
  await answer.dump()
  if (statusCode >= 300) throw new Error(`answered ${statusCode}`)
})
