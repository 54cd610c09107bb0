// A tiny receiver of leads: `npm run docs -- receiver <secret>`. It verifies each delivery before it reads it, and prints it.
// Take it as a start for one of your own: what it keeps in memory belongs in a database then.
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { Webhook } from 'standardwebhooks'

const bodyMaxBytes = 64 * 1024
/** Longer than the last retry of a delivery may take. */
const rememberMs = 48 * 3_600_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '9000' } },
})
const [secret] = positionals
if (secret === undefined) {
  console.error('usage: npm run docs -- receiver <secret> [--port 9000]')
  process.exit(2)
}
const webhook = new Webhook(secret)
const seen = new Map<string, number>()

const server = createServer(async (request, response) => {
  const answer = (status: number) => response.writeHead(status).end()
  const parts: Buffer[] = []
  let length = 0
  for await (const part of request) {
    length += part.length
    if (length > bodyMaxBytes) return answer(413)
    parts.push(part)
  }

  let lead: unknown
  try {
    // The raw bytes, the signature and the time, all before anything is parsed.
    lead = webhook.verify(Buffer.concat(parts), request.headers as Record<string, string>)
  } catch {
    // Beware: 401 makes the sender disable the subscription, until somebody has put the secret right.
    console.log('refused: the signature or the time is not right')
    return answer(401)
  }

  // A delivery may come more than once. Only the first one counts, all are accepted.
  const id = String(request.headers['webhook-id'])
  const now = Date.now()
  for (const [old, at] of seen) if (now - at > rememberMs) seen.delete(old)
  if (seen.has(id)) console.log(`again: ${id}`)
  else console.log(`${id} ${JSON.stringify(lead)}`)
  seen.set(id, now)
  answer(204)
})

server.listen(Number(values.port), () => {
  const address = server.address()
  console.log(`listening on http://localhost:${typeof address === 'object' ? address?.port : address}`)
})
