import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { newSecret } from '../support/hostile-deliveries.ts'
import { listen } from '../support/listen.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'

type Call = { method: string; path: string; token: string; body: string }
type Answer = { status: number; body?: unknown }

const secret = newSecret()
const folder = mkdtempSync(join(tmpdir(), 'crm-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Returns the bytes and headers of a delivery, signed by the code of the service. */
function delivery(id: string, data: Record<string, string>, { change = {}, signer = secret } = {}) {
  const event = { eventType: 'lead.ready-for-delivery', id, contractVersion: '1.0', occurredAt: '2026-11-20T12:00:00Z' }
  const body = new TextEncoder().encode(JSON.stringify({ ...event, data: { reference: 'lead_1', ...data }, ...change }))
  const secrets = { active: signer, all: [signer] }
  return { body, headers: webhookHeaders({ deliveryId: id, correlationId: 'cor', body, secrets, at: Date.now() }) }
}

/** HubSpot as documented: https://developers.hubspot.com/docs/api-reference/crm-contacts-v3/batch */
function hubspot() {
  const contacts = new Map<string, string>()
  return ({ method, path, token, body }: Call): Answer => {
    if (`${method} ${path}` !== 'POST /crm/v3/objects/contacts/batch/upsert') return { status: 404 }
    if (token !== 'Bearer pat-1') return { status: 401, body: { status: 'error', category: 'INVALID_AUTHENTICATION' } }
    const [{ idProperty, id, properties }] = JSON.parse(body).inputs
    if (idProperty !== 'email' || properties.email !== id || properties.reference !== undefined) return { status: 500 }
    if (!/^[a-z0-9.]+@[a-z.]+$/.test(id))
      return { status: 400, body: { status: 'error', category: 'VALIDATION_ERROR', message: `${id} is invalid` } }
    const isNew = !contacts.has(id)
    const record = contacts.get(id) ?? String(contacts.size + 501)
    contacts.set(id, record)
    return { status: 200, body: { status: 'COMPLETE', results: [{ id: record, new: isNew, properties }] } }
  }
}

/** Salesforce as documented: https://developer.salesforce.com/docs/platform/api-rest/guide/dome-upsert.html */
function salesforce() {
  const leads = new Map<string, string>()
  let token = 0
  let uses = 0
  return (call: Call): Answer => {
    if (`${call.method} ${call.path}` === 'POST /services/oauth2/token') {
      const form = Object.fromEntries(new URLSearchParams(call.body))
      const expected = { grant_type: 'client_credentials', client_id: 'app', client_secret: 'pat-1' }
      if (JSON.stringify(form) !== JSON.stringify(expected)) return { status: 400, body: { error: 'invalid_client' } }
      token += 1
      uses = 0
      return { status: 200, body: { access_token: `token-${token}`, token_type: 'Bearer' } }
    }
    const [, encoded = ''] = /^\/services\/data\/v\d+\.0\/sobjects\/Lead\/Chat_Email__c\/([^/]+)$/.exec(call.path) ?? []
    if (call.method !== 'PATCH' || !encoded) return { status: 404, body: [{ errorCode: 'NOT_FOUND' }] }
    // A token expires after three calls.
    if (call.token !== `Bearer token-${token}` || ++uses > 3)
      return { status: 401, body: [{ errorCode: 'INVALID_SESSION_ID' }] }
    const email = decodeURIComponent(encoded)
    const { Email, LastName, Company } = JSON.parse(call.body)
    if (!/^[a-z0-9.]+@[a-z.]+$/.test(email)) return { status: 400, body: [{ errorCode: 'INVALID_EMAIL_ADDRESS' }] }
    if (Email !== email) return { status: 500 }
    const isNew = !leads.has(email)
    if (isNew && !(LastName && Company)) return { status: 400, body: [{ errorCode: 'REQUIRED_FIELD_MISSING' }] }
    const id = leads.get(email) ?? `00Q${leads.size + 501}`
    leads.set(email, id)
    return { status: isNew ? 201 : 200, body: { id, success: true, errors: [], created: isNew } }
  }
}

describe.each([
  { name: 'hubspot', crm: hubspot, key: 'HUBSPOT_TOKEN', first: '501', second: '502', named: 'firstname' },
  {
    name: 'salesforce',
    crm: salesforce,
    key: 'SALESFORCE_CLIENT_SECRET',
    first: '00Q501',
    second: '00Q502',
    named: 'FirstName',
  },
])('the relay to $name', ({ name, crm, key, first, second, named }) => {
  const calls: Call[] = []
  const answerOf = crm()
  let state: 'up' | 'away' | 'refusing' = 'up'
  const server = createServer(async (request, response) => {
    const { method = '', url: path = '', headers } = request
    const call = { method, path, token: headers.authorization ?? '', body: await text(request) }
    if (state === 'away') return response.writeHead(502).end('<html>Bad gateway</html>')
    calls.push(call)
    const { status, body } = answerOf(state === 'refusing' ? { ...call, token: '', body: '' } : call)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const answersFile = join(folder, `${name}.jsonl`)
  let relay: StartedProcess
  let crmUrl: string
  let url = ''

  async function start() {
    const port = await freePort()
    url = `http://127.0.0.1:${port}/`
    relay = await startProcess({
      entry: `docs/examples/${name}-relay.ts`,
      env: {
        WEBHOOK_SECRET: secret,
        PORT: String(port),
        ANSWERS_FILE: answersFile,
        [`${name.toUpperCase()}_URL`]: crmUrl,
        SALESFORCE_CLIENT_ID: 'app',
        [key]: 'pat-1',
      },
    })
    await until('the relay to listen', () => relay.output().includes('listening'))
  }
  async function send({ headers, body }: { headers: Record<string, string>; body: Uint8Array<ArrayBuffer> }) {
    const answer = await fetch(url, { method: 'POST', headers, body })
    return [answer.status, await answer.text()]
  }
  const upserts = () => calls.filter(({ path }) => !path.endsWith('/token'))

  beforeAll(async () => {
    crmUrl = (await listen(server)).url
    await start()
  })
  afterAll(() => relay.stop())

  it('creates and updates the record of the mail address, and sends a repeated delivery once', async () => {
    const one = delivery('dlv_1', { email: 'Ada.L@example.com', [named]: 'Zoë' })
    const both = await Promise.all([send(one), send(one)])
    expect(both.sort()).toEqual([
      [200, `dlv_1 created ${first}`],
      [200, `dlv_1 repeated ${first}`],
    ])
    const sent = upserts().length
    expect(calls.at(-1)?.body).toContain('Zoë')
    expect(await send(delivery('dlv_2', { email: 'ada.l@example.com ' }))).toEqual([200, `dlv_2 updated ${first}`])
    expect(upserts()).toHaveLength(sent + 1)
    await relay.stop()
    await start()
    expect(await send(delivery('dlv_1', { email: 'Ada.L@example.com', [named]: 'Zoë' }))).toEqual([
      200,
      `dlv_1 repeated ${first}`,
    ])
    expect(upserts()).toHaveLength(sent + 1)
    expect(readFileSync(answersFile, 'utf8')).not.toContain('@')
  })

  it('refuses a wrong signature, and sends neither tests nor other events', async () => {
    const sent = calls.length
    expect(await send(delivery('dlv_3', { email: 'eve@example.com' }, { signer: newSecret() }))).toEqual([
      401,
      expect.stringContaining('invalid_signature'),
    ])
    for (const change of [{ test: true }, { eventType: 'lead.captured' }, { eventType: 'lead.sold' }])
      expect(await send(delivery('dlv_3', { email: 'eve@example.com' }, { change }))).toEqual([200, 'ignored'])
    expect(calls).toHaveLength(sent)
  })

  it('asks for a repeat while the CRM is away or refuses its token, and not for a lead that the CRM refuses', async () => {
    const lead = delivery('dlv_4', { email: 'grace@example.com' })
    state = 'away'
    expect(await send(lead)).toEqual([503, expect.stringContaining('502')])
    state = 'refusing'
    expect(await send(lead)).toEqual([503, expect.stringMatching(/40[01] inv/i)])
    state = 'up'
    expect(await send(lead)).toEqual([200, `dlv_4 created ${second}`])
    for (const id of ['dlv_5', 'dlv_6', 'dlv_7'])
      expect((await send(delivery(id, { email: 'grace@example.com' })))[0]).toBe(200)
    const [status, reason] = await send(delivery('dlv_8', { email: 'no address' }))
    expect([status, reason]).toEqual([422, expect.stringMatching(/ (VALIDATION_ERROR|INVALID_EMAIL_ADDRESS)$/)])
    expect(await send(delivery('dlv_9', { phone: '1' }))).toEqual([422, 'the lead has no field email'])
    expect(relay.output()).not.toMatch(/no address|pat-1|whsec/)
  })
})
