// A minimal receiver of leads: `npx node docs/examples/receiver.ts <secret>`. It verifies each delivery
// before it parses it, and prints the lead. A real receiver must store the received ids in a
// database; this example keeps them in memory.
import { createServer, type IncomingMessage } from 'node:http'
import { parseArgs } from 'node:util'
import { Webhook } from 'standardwebhooks'

const bodyMaxBytes = 64 * 1024
const contractVersion = '1.0'
/** How long ids of deliveries are kept. Must exceed the time until the last retry of a delivery. */
const rememberMs = 48 * 3_600_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '9000' } },
})
const [secret] = positionals
if (secret === undefined) {
  console.error('usage: npx node docs/examples/receiver.ts <secret> [--port 9000]')
  process.exit(2)
}
const webhook = new Webhook(secret)
const seen = new Map<string, number>()

/** Returns the status of the answer. */
async function receive(request: IncomingMessage): Promise<number> {
  const { 'content-type': type = '', 'x-service-webhook-version': version } = request.headers
  if (type.split(';')[0]?.trim().toLowerCase() !== 'application/json') return 415
  if (version !== contractVersion) return 400
  const parts: Buffer[] = []
  let length = 0
  for await (const part of request.iterator({ destroyOnReturn: false })) {
    length += part.length
    if (length > bodyMaxBytes) return 413
    parts.push(part)
  }

  let lead: unknown
  try {
    // Verifies signature and timestamp over the raw bytes, before the body is parsed.
    lead = webhook.verify(Buffer.concat(parts), request.headers as Record<string, string>)
  } catch {
    // The sender disables the subscription after a 401. An operator must then correct the secret
    // and enable the subscription.
    console.log('rejected: the signature or the timestamp is invalid')
    return 401
  }

  // A delivery may arrive more than once. Handle it only the first time, but return success each
  // time.
  const id = String(request.headers['webhook-id'])
  const now = Date.now()
  for (const [old, at] of seen) if (now - at > rememberMs) seen.delete(old)
  if (seen.has(id)) console.log(`duplicate: ${id}`)
  else console.log(`${id} ${JSON.stringify(lead)}`)
  seen.set(id, now)
  return 204
}

const server = createServer((request, response) => {
  receive(request).then(
    // The rest of a refused body is not read.
    (status) => response.writeHead(status, status < 400 ? {} : { connection: 'close' }).end(),
    // The sender closed the connection.
    () => response.destroy(),
  )
})

server.listen(Number(values.port), () => {
  const address = server.address()
  console.log(`listening on http://localhost:${typeof address === 'object' ? address?.port : address}`)
})
