import { expect } from 'vitest'
import { newSite } from '../support/resources.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer } from './client.ts'
import { MissingAccess } from './missing-access.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const PAGE_MAX_BYTES = 262_144
const LARGE = '😀'.repeat(4_000)

/** Tests of contract section 7: origins of pages of the gateway, and costs of reads. */
export function costRules(suite: () => Suite): void {
  rule('C7.7', async () => {
    const { operator, client, stack } = suite().roomy
    const own = new URL(stack.gateways[0]!.url).origin
    const { siteKey } = await newSite(operator, [own])
    const visitor = await stack.newVisitor({ origin: own, siteKey })
    const get = (headers: Record<string, string | null>, path = `/config/${siteKey}`) =>
      client.call('GET', path, { headers: { ...bearer(visitor), origin: null, ...headers } })
    const same = { 'sec-fetch-site': 'same-origin' }
    for (const path of [`/config/${siteKey}`, '/messages']) expect((await get(same, path)).status).toBe(200)
    expect((await get(same)).headers.get('access-control-allow-origin')).toBe(own)
    for (const site of ['cross-site', 'same-site', 'none', ''])
      expect((await get({ 'sec-fetch-site': site })).body.code).toBe('OriginNotAllowed')
    expect((await get({})).body.code).toBe('OriginNotAllowed')
    expect((await get({ ...same, origin: 'https://evil.example' })).body.code).toBe('OriginNotAllowed')
    const body = { publicSiteKey: siteKey, clientInstanceId: 'i' }
    const post = await client.call('POST', '/sessions', { headers: { ...same, origin: null }, body })
    expect(post.body.code).toBe('OriginNotAllowed')
  })

  rule(
    'C7.22',
    async () => {
      const visitor = await visitorWith(suite(), 40, LARGE)
      const read = (query: string) => readPage(suite(), visitor, query)
      const first = await read('?limit=100')
      expect(first).toMatchObject({ hasMore: true, lastSequence: 40, oldestSequence: 1 })
      expect(first.sequences).toEqual(Array.from(first.sequences, (_, index) => index + 1))
      const forwards = [first]
      while (forwards.at(-1)!.hasMore)
        forwards.push(await read(`?limit=100&afterSequence=${forwards.at(-1)!.sequences.at(-1)}`))
      const backwards = [await read('?limit=100&beforeSequence=2147483647')]
      expect(backwards[0]!.sequences.at(-1)).toBe(40)
      while (backwards.at(-1)!.hasMore)
        backwards.push(await read(`?limit=100&beforeSequence=${backwards.at(-1)!.sequences[0]}`))
      const all = Array.from({ length: 40 }, (_, index) => index + 1)
      expect(forwards.flatMap(({ sequences }) => sequences)).toEqual(all)
      expect(backwards.toReversed().flatMap(({ sequences }) => sequences)).toEqual(all)
      for (const { bytes } of [...forwards, ...backwards]) expect(bytes).toBeLessThanOrEqual(PAGE_MAX_BYTES)
    },
    'size of pages',
  )

  rule(
    'C7.22',
    async () => {
      const body = '😀'.repeat(suite().agentBodyLength)
      if (Buffer.byteLength(body) < PAGE_MAX_BYTES) throw new MissingAccess('messages that are larger than a page')
      const visitor = await visitorWith(suite(), 3, body)
      const page = (query: string) => readPage(suite(), visitor, query)
      expect(await page('')).toMatchObject({ sequences: [1], hasMore: true })
      expect(await page('?afterSequence=2')).toMatchObject({ sequences: [3], hasMore: false })
      expect(await page('?beforeSequence=3')).toMatchObject({ sequences: [2], hasMore: true })
    },
    'a message larger than a page',
  )

  rule(
    'C7.22',
    async () => {
      const { client } = suite().roomy
      const visitor = await client.visitor()
      const others = await client.visitor()
      await visitor.send('Hello')
      const reads = Promise.all(
        Array.from({ length: 300 }, () => client.call('GET', '/messages', { headers: bearer(visitor) })),
      )
      for (let index = 0; index < 5; index++) expect((await others.send(`send ${index}`)).status).toBe(202)
      const answers = await reads
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(100)
      for (const { status, headers } of answers.filter(({ status }) => status !== 200)) {
        expect([429, 503]).toContain(status)
        expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
      }
      expect((await client.call('GET', '/messages', { headers: bearer(visitor) })).status).toBe(200)
    },
    'concurrent reads',
  )
}

/** Creates a visitor whose conversation has this number of messages of an agent. */
async function visitorWith({ roomy: { operator, client } }: Suite, messages: number, body: string): Promise<Visitor> {
  const visitor = await client.visitor()
  const { conversationId } = visitor.session
  for (let index = 0; index < messages; index++)
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: `a${index}`, body })
  return visitor
}

async function readPage(suite: Suite, visitor: Visitor, query: string) {
  const { body, text } = await suite.roomy.client.call('GET', `/messages${query}`, { headers: bearer(visitor) })
  const sequences = (body.messages as { sequence: number }[]).map(({ sequence }) => sequence)
  return { ...body, sequences, bytes: Buffer.byteLength(text) }
}
