// What the relays to a CRM share: verifies each delivery, sends its lead to the CRM once, and keeps the
// answer of the CRM by `webhook-id`. It answers 2xx only after the CRM has the lead (docs/crm.md).
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
// In a project of your own: from '@service/webhooks'
import { createVerifier, WebhookError } from '../../webhooks/src/index.ts'

/** What the CRM said of a lead: the id of its record, and whether it is new. */
export type CrmAnswer = { record: string; created: boolean }
export type Fields = Record<string, string>

/** Error: the CRM has not taken the lead. `isInvalid` says that a repeat would be refused, too. */
export class CrmError extends Error {
  readonly isInvalid: boolean
  constructor(message: string, isInvalid = false) {
    super(message)
    this.isInvalid = isInvalid
  }
}

/** How long answers are kept, which are removed at a start: operators may send a delivery again days later. */
const keepMs = 30 * 24 * 3_600_000
/** The service waits ten seconds for the answer, so that all calls to the CRM must end before. */
const withinMs = 8_000

/** Sends a request to the CRM. Errors: `CrmError`, except for the statuses that the caller handles. */
export async function callCrm(url: string, request: RequestInit, handled: number[] = []) {
  const answer = await fetch(url, { ...request, redirect: 'error' })
  const { status, ok } = answer
  const body = parsed(await answer.text())
  // Only the code of the error: its text can have personal data, and operators see it.
  const code = body[0]?.errorCode ?? body.category ?? body.error ?? ''
  if (!ok && !handled.includes(status)) throw new CrmError(`the CRM answered ${status} ${code}`, status === 400)
  return { status, code, body }
}

function parsed(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** Serves a relay. `upsert` creates or updates the record with this mail address. */
export function serveRelay(upsert: (email: string, fields: Fields, signal: AbortSignal) => Promise<CrmAnswer>) {
  const { WEBHOOK_SECRET, OLD_WEBHOOK_SECRET, PORT = '9000', ANSWERS_FILE = 'crm-answers.jsonl' } = process.env
  const verify = createVerifier(...[WEBHOOK_SECRET, OLD_WEBHOOK_SECRET].slice(0, OLD_WEBHOOK_SECRET ? 2 : 1))
  const lines = existsSync(ANSWERS_FILE) ? readFileSync(ANSWERS_FILE, 'utf8').split('\n').slice(0, -1) : []
  const kept = lines.filter((line) => JSON.parse(line).at > Date.now() - keepMs)
  writeFileSync(ANSWERS_FILE, kept.map((line) => `${line}\n`).join(''))
  // A repeat that arrives while the first is on its way waits for the same answer.
  const answers = new Map(kept.map((line) => [JSON.parse(line).id as string, Promise.resolve(JSON.parse(line))]))

  async function send(id: string, { reference: _, ...fields }: Fields): Promise<CrmAnswer> {
    const email = fields.email?.trim().toLowerCase()
    if (!email) throw new CrmError('the lead has no field email', true)
    const answer = await upsert(email, { ...fields, email }, AbortSignal.timeout(withinMs))
    appendFileSync(ANSWERS_FILE, `${JSON.stringify({ id, at: Date.now(), ...answer })}\n`)
    return answer
  }

  async function receive(request: IncomingMessage): Promise<string> {
    const event = await verify(request)
    if (event.eventType !== 'lead.ready-for-delivery' || event.test) return 'ignored'
    const known = answers.get(event.id)
    const answer = known ?? send(event.id, event.data)
    answers.set(event.id, answer)
    answer.catch(() => answers.delete(event.id))
    const { record, created } = await answer
    return `${event.id} ${known ? 'repeated' : created ? 'created' : 'updated'} ${record}`
  }

  return createServer(async (request, response) => {
    try {
      const done = await receive(request)
      console.log(done)
      response.writeHead(200).end(done)
    } catch (error) {
      const { message } = error as Error
      // A 401 or 403 of the CRM must not reach the service, which would disable the subscription.
      const status =
        error instanceof WebhookError ? error.status : error instanceof CrmError && error.isInvalid ? 422 : 503
      console.log(`${status}: ${message}`)
      response.writeHead(status, { connection: 'close' }).end(message)
    }
  }).listen(Number(PORT), () => console.log('listening'))
}
