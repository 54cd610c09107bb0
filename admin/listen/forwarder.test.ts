import { createServer, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../../test/support/listen.ts'
import { createForwarder } from './forwarder.ts'
import type { LocalEvent } from './local-events.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const eventOf = (id: string): LocalEvent => ({
  id,
  type: 'lead.captured',
  replayFrom: `before ${id}`,
  body: new TextEncoder().encode(JSON.stringify({ id })),
})

/** A receiver that answers with these statuses in turn, and a forwarder whose retries the test starts. */
async function startForwarder(statuses: number[], answerHeaders: Record<string, string> = {}) {
  const received: { headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: String(await buffer(request)) })
    response.writeHead(statuses.shift() ?? 204, answerHeaders).end()
  })
  const { url, close } = await listen(server)
  const lines: string[] = []
  const retries: { ms: number; start: () => void }[] = []
  const forwarder = createForwarder({
    url: new URL(url),
    secret,
    report: (line) => lines.push(line),
    random: () => 0,
    pause: (ms, signal) =>
      new Promise<void>((resolve) => {
        retries.push({ ms, start: resolve })
        signal.addEventListener('abort', () => resolve())
      }),
  })
  onTestFinished(() => void forwarder.stop())
  return { forwarder, received, lines, retries, close }
}

it('a forwarder signs each attempt like a delivery, with the id of the event', async () => {
  const { forwarder, received, lines } = await startForwarder([])
  await forwarder.send(eventOf('evt_1'))
  const [{ headers, body }] = received as [(typeof received)[0]]
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual({ id: 'evt_1' })
  expect(headers).toMatchObject({ 'webhook-id': 'evt_1', 'x-service-webhook-version': '1.0' })
  expect(lines).toEqual([expect.stringMatching(/^lead\.captured evt_1 -> 204 in \d+ ms$/)])
  expect(forwarder.stop()).toEqual([])
})

it('a forwarder retries after the same delays as deliveries, and sends other events meanwhile', async () => {
  const { forwarder, received, retries, lines } = await startForwarder([500, 204, 503], { 'retry-after': '60' })
  await forwarder.send(eventOf('evt_1'))
  await forwarder.send(eventOf('evt_2'))
  expect(retries.map(({ ms }) => ms)).toEqual([5_000])
  retries[0]!.start()
  // The second answer asks for a longer wait than the schedule.
  await expect.poll(() => retries.map(({ ms }) => ms)).toEqual([5_000, 60_000])
  retries[1]!.start()
  await expect.poll(() => lines.at(-1)).toMatch(/^lead\.captured evt_1 -> 204/)
  expect(received.map(({ headers }) => headers['webhook-id'])).toEqual(['evt_1', 'evt_2', 'evt_1', 'evt_1'])
  expect(lines[0]).toMatch(/500 in \d+ ms; retry 1 in 5 s$/)
})

it('a forwarder that stops returns the events without acceptance, and retries none of them', async () => {
  const { forwarder, received, close, lines } = await startForwarder([500])
  await forwarder.send(eventOf('evt_1'))
  await forwarder.send(eventOf('evt_2'))
  await close()
  await forwarder.send(eventOf('evt_3'))
  expect(lines.at(-1)).toMatch(/^lead\.captured evt_3 -> [A-Z_]+; retry 1 in 5 s$/)
  expect(forwarder.stop().map(({ replayFrom }) => replayFrom)).toEqual(['before evt_1', 'before evt_3'])
  await forwarder.send(eventOf('evt_4'))
  expect(received).toHaveLength(2)
})

it('a forwarder does not follow a redirect and does not retry a refusal', async () => {
  const { forwarder, received, retries, lines } = await startForwarder([302, 401], { location: '/elsewhere' })
  await forwarder.send(eventOf('evt_1'))
  await forwarder.send(eventOf('evt_2'))
  expect([received.length, retries.length]).toEqual([2, 0])
  expect(lines.at(-1)).toMatch(/-> 401 in \d+ ms: does the receiver have the secret above\?$/)
})
