// A minimal receiver of events: `npx node docs/examples/receiver.ts <secret>`. It verifies each request
// and prints the event. A real receiver must store the received ids in a database; this example keeps
// them in memory.
import { createServer, type IncomingMessage } from 'node:http'
import { parseArgs } from 'node:util'
// In a project of your own: from '@service/webhooks'
import { createVerifier, WebhookError } from '../../webhooks/src/index.ts'

/** How long ids of events are kept. Must exceed the time until the last retry of a delivery. */
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
const verify = createVerifier(secret)
const seen = new Map<string, number>()

async function receive(request: IncomingMessage): Promise<void> {
  const event = await verify(request)
  // An event may arrive more than once. Handle it only the first time, but return success each time.
  const now = Date.now()
  for (const [old, at] of seen) if (now - at > rememberMs) seen.delete(old)
  if (seen.has(event.id)) console.log(`duplicate: ${event.id}`)
  else console.log(`${event.id} ${JSON.stringify(event)}`)
  seen.set(event.id, now)
}

const server = createServer(async (request, response) => {
  try {
    await receive(request)
    response.writeHead(204).end()
  } catch (error) {
    // The sender disables the subscription after a 401. An operator must then correct the secret and
    // enable the subscription.
    console.log(`rejected: ${(error as Error).message}`)
    // The rest of a refused body is not read.
    response.writeHead(error instanceof WebhookError ? error.status : 500, { connection: 'close' }).end()
  }
})

server.listen(Number(values.port), () => {
  const address = server.address()
  console.log(`listening on http://localhost:${typeof address === 'object' ? address?.port : address}`)
})
