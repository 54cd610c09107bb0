import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const base = '/api/integrations/v1/widget'
const body = 'Do you have these in a smaller size, and could you send them to Graz before the weekend? '.padEnd(
  100,
  '.',
)

/** A busy service sheds load with a 503, as it would to a browser, which repeats the request. */
const retryMs = 1_000

/** A visitor with a session, a stream and messages. */
export interface CapacityVisitor {
  openStream(): Promise<void>
  closeStream(): void
  /** Sends a message of 100 characters. Throws if it is refused. */
  write(): Promise<void>
}

export interface Site {
  gatewayUrl: string
  origin: string
  siteKey: string
}

/** Creates a visitor with a minimal HTTP client, so that the load uses little CPU time. */
export async function createVisitor({ gatewayUrl, origin, siteKey }: Site, agent: Agent): Promise<CapacityVisitor> {
  const headers = { origin, 'x-service-widget-version': '1.0', 'content-type': 'application/json' }
  let stream: ClientRequest | undefined

  async function post(path: string, content: object, key: string, authorization?: string) {
    for (;;) {
      const call = request(`${gatewayUrl}${base}${path}`, {
        method: 'POST',
        agent,
        headers: { ...headers, 'idempotency-key': key, ...(authorization && { authorization }) },
      }).end(JSON.stringify(content))
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      const text = await answer.setEncoding('utf8').toArray()
      if ((answer.statusCode ?? 0) < 300) return JSON.parse(text.join(''))
      if (answer.statusCode !== 503) throw new Error(`${path} answered ${answer.statusCode}`)
      await delay(retryMs)
    }
  }

  const session = await post('/sessions', { publicSiteKey: siteKey, clientInstanceId: randomUUID() }, randomUUID())
  const authorization = `Bearer ${session.accessGrant}`

  return {
    async openStream() {
      stream = request(`${gatewayUrl}${base}/events?afterSequence=0`, { headers: { ...headers, authorization } }).end()
      const [answer] = (await once(stream, 'response')) as [IncomingMessage]
      if (answer.statusCode !== 200) throw new Error(`/events answered ${answer.statusCode}`)
      answer.on('error', () => {}).resume()
      stream.on('error', () => {})
    },
    closeStream: () => void stream?.destroy(),
    async write() {
      const clientOperationId = randomUUID()
      await post('/messages', { clientOperationId, body, contentType: 'text' }, clientOperationId, authorization)
    },
  }
}
