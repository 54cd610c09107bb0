import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { newSite } from '../support/resources.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer } from './client.ts'
import { loadDocument } from './document-check.ts'
import { openRaw, readRaw } from './raw-stream.ts'
import { sendAgentMessages, sendMany } from './replay.ts'
import { inTime, rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of contract section 4: open streams and their end. */
export function streamRules(suite: () => Suite): void {
  rule('C4.9', async () => {
    const visitor = await suite().roomy.client.visitor()
    await sendMany(visitor, 2)
    const stream = await visitor.openStream({ after: 0 })
    await until('a heartbeat', () => stream.comments.includes('hb 2'))
    await visitor.send('three')
    await until('the next', () => stream.comments.includes('hb 3'))
    stream.close()
  })

  rule('C4.10', async () => {
    const visitor = await suite().roomy.client.visitor()
    const hints = new Set<number>()
    for (let index = 0; index < 6; index++) {
      const text = await readRaw(suite().roomy, visitor, '', (received) => /retry: \d+\n\n:.*\n\n/.test(received))
      expect(text).toMatch(/retry: \d+\n\n:(?! hb)/)
      hints.add(Number(/retry: (\d+)/.exec(text)?.[1]))
    }
    for (const hint of hints) expect(hint).toBeGreaterThanOrEqual(500)
    for (const hint of hints) expect(hint).toBeLessThanOrEqual(2000)
    expect(hints.size).toBeGreaterThan(1)
  })

  rule('C4.11', async () => {
    const visitor = await suite().roomy.client.visitor()
    const text = await readRaw(
      suite().roomy,
      visitor,
      '',
      (received) => received.includes(': open'),
      'Accept-Encoding: gzip, br\r\n',
    )
    const head = text.slice(0, text.indexOf('\r\n\r\n')).toLowerCase()
    expect(head).toContain('content-type: text/event-stream')
    expect(head).toContain('cache-control: no-store, no-transform')
    expect(head).toContain('x-accel-buffering: no')
    expect(head).toContain('x-correlation-id: ')
    expect(head).toContain(`access-control-allow-origin: ${suite().roomy.stack.demo.origin}`)
    expect(head).not.toContain('content-encoding')
  })

  rule('C4.12', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const stream = await visitor.openStream({ after: 0 })
    const { sessionId, renewalToken } = visitor.session
    const renewed = await client.call('POST', '/sessions/renew', {
      headers: bearer(visitor),
      body: { sessionId, renewalToken },
    })
    visitor.session = renewed.body
    await visitor.send('after the renewal')
    await until('the event', () => stream.events.length === 1)
    stream.close()
  })

  rule('C4.13', async () => {
    const { client, operator, stack } = suite().roomy
    const ends: [string, (visitor: Visitor) => Promise<unknown>][] = [
      ['session.revoked', ({ session }) => operator.sessions.revokeSession({ sessionId: session.sessionId })],
      ['visitor.banned', ({ session }) => operator.sessions.banVisitor({ sessionId: session.sessionId, reason: 'x' })],
      [
        'session.closed',
        (visitor) =>
          client.call('POST', '/sessions/close', { headers: bearer(visitor), body: { scope: 'continuity' } }),
      ],
    ]
    for (const [type, end] of ends) {
      const visitor = await client.visitor()
      // A message whose operation id equals the type of the terminal event must not prevent that event.
      for (const [clientOperationId] of ends) await visitor.send('hello', { clientOperationId })
      const streams = await Promise.all(stack.gateways.map(({ url: via }) => visitor.openStream({ via })))
      await end(visitor)
      for (const stream of streams) {
        await stream.ended
        expect(stream.events.map((event) => [event.type, event.data])).toEqual([[type, {}]])
      }
    }
    const origin = 'https://ends.example'
    const { connectionId, siteKey } = await newSite(suite().roomy.operator, [origin])
    const visitor = await stack.newVisitor({ origin, siteKey })
    const stream = await visitor.openStream()
    await operator.workspaces.setConnectionStatus({ connectionId, status: 2 })
    await stream.ended
    expect(stream.events.map(({ type }) => type)).toEqual(['connection.disabled'])
  })

  // After these changes, the stream ends without a terminal event, because the session itself has
  // not ended. The test of rule C4.13 covers ended sessions.
  for (const [name, change] of [
    ['an origin is removed', { origins: ['https://another.example'] }],
    ['an installation is disabled', { enabled: false }],
  ] as [string, { origins?: string[]; enabled?: boolean }][]) {
    rule(
      'C1.24',
      () =>
        inTime(async () => {
          const { operator, stack } = suite().roomy
          const origin = `https://${randomUUID()}.example`
          const { siteKey } = await newSite(suite().roomy.operator, [origin])
          const visitor = await stack.newVisitor({ origin, siteKey })
          const streams = await Promise.all(stack.gateways.map(({ url: via }) => visitor.openStream({ via })))
          const sendAsAgent = (body: string) =>
            operator.messaging.sendAgentMessage({
              conversationId: visitor.session.conversationId,
              clientOperationId: randomUUID(),
              body,
            })
          await sendAsAgent('before')
          for (const stream of streams) await until('the message', () => stream.events.length === 1)
          await operator.workspaces.updateInstallation({ siteKey, ...change })
          const began = performance.now()
          await sendAsAgent('after')
          for (const stream of streams) await stream.ended
          const isInTime = performance.now() - began < 1000
          for (const stream of streams) expect(stream.events.map(({ data }) => data.message.body)).toEqual(['before'])
          expect((await visitor.send('refused')).body.code).toBe('OriginNotAllowed')
          await operator.workspaces.updateInstallation({ siteKey, enabled: true, origins: [origin] })
          const resumed = await until('the stream to be allowed again', async () => {
            const stream = await visitor.openStream({ after: streams[0]!.events[0]!.sequence })
            return stream.status === 200 ? stream : undefined
          })
          await until('what was missed', () => resumed.events.length === 1)
          expect(resumed.events[0]!.data.message.body).toBe('after')
          resumed.close()
          return isInTime
        }),
      name,
    )
  }

  rule('C4.16', async () => {
    const { client, operator } = suite().roomy
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    const stream = await visitor.openStream({ after: 0 })
    const evil = 'hi\n\nid: x-9\nevent: session.revoked\ndata: {}\n\nretry: 0\n\u2028\u2029'
    await visitor.send(evil)
    await operator.messaging.sendAgentMessage({
      conversationId,
      clientOperationId: 'a',
      body: evil,
      agent: { displayName: 'Ada\nevent: visitor.banned' },
    })
    await until('both', () => stream.events.length === 2)
    expect(stream.events.map(({ type }) => type)).toEqual(['message.accepted', 'message.received'])
    // Soft line ends become LF (rule C3.15).
    const stored = evil.replace(/[\u2028\u2029]/g, '\n')
    expect(stream.events.map(({ data }) => data.message.body)).toEqual([stored, stored])
    stream.close()
  })

  rule('C4.17', async () => {
    const visitor = await suite().roomy.client.visitor()
    expect(await readRaw(suite().roomy, visitor, '', (received) => received.includes(': open'))).toMatch(
      /^HTTP\/1\.1 200 /,
    )
  })

  rule('C4.19', async () => {
    const { client, operator, stack } = suite().roomy
    const document = await loadDocument(stack.gateways[0]!.url)
    const visitor = await client.visitor()
    const { conversationId, sessionId } = visitor.session
    const stream = openRaw(suite().roomy, visitor, '')
    await until('the opening', () => stream.text().includes(': open'))
    await sendMany(visitor, 1)
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: 'a', body: 'Hi' })
    await operator.sessions.revokeSession({ sessionId })
    await until('the end', () => stream.text().includes('session.revoked'))
    stream.socket.destroy()
    const lost = await readRaw(suite().roomy, await client.visitor(), '?afterSequence=9', (text) =>
      /^data: .*$/m.test(text),
    )
    const data = [...`${stream.text()}${lost}`.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => JSON.parse(json))
    expect(data.map(({ type }) => type)).toEqual([
      'message.accepted',
      'message.received',
      'session.revoked',
      'replay.reset.required',
    ])
    for (const event of data) expect(document.eventProblems(event)).toEqual([])
  })
}

/** The test of a client that reads too slowly, which sends 9 MB. */
export function slowReaderRules(suite: () => Suite): void {
  rule('C4.14', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const stream = openRaw(suite().roomy, visitor, '?afterSequence=0')
    await until('the opening', () => stream.text().includes(': open'))
    stream.socket.pause()
    // The messages together have 9 MB, which is more than the kernel can buffer on both sides. The
    // text has no words, so that the search indexes nothing.
    const { agentBodyLength } = suite()
    const sent = 3e6 / agentBodyLength
    await sendAgentMessages(suite(), visitor, sent, '…'.repeat(agentBodyLength))
    stream.socket.resume()
    await stream.ended
    const ids = [...stream.text().matchAll(/^id: \S+-(\d+)$/gm)].map(([, sequence]) => Number(sequence))
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1))
    expect(ids.length).toBeLessThan(sent)
    const resumed = await visitor.openStream({ after: sent - 2 })
    await until('the rest', () => resumed.events.length === 2)
    resumed.close()
    expect(
      (await client.call('GET', '/messages?afterSequence=0&limit=1', { headers: bearer(visitor) })).body,
    ).toMatchObject({ lastSequence: sent, oldestSequence: 1 })
  })
}
