import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { useLocalStack } from '../support/local-stack.ts'
import { nastyTexts } from '../support/nasty-values.ts'
import { residentBytes } from '../support/proc.ts'
import { until } from '../support/until.ts'
import { restoreSite } from './fixtures.ts'
import { fuzz } from './fuzz.ts'

/** Allowed memory growth. Normal requests need less memory; a leak in every request would need more. */
const maxGrowthBytes = 400 * 2 ** 20
const stack = useLocalStack({ env: { RATE_LIMIT_FACTOR: '100000' } })

describe('hostile input', { timeout: 300_000 }, () => {
  it('hostile input gets only answers that the contract allows', async () => {
    const before = await residentBytes(process.pid)
    const report = await fuzz({ stack, seed: 1, casesEach: 6, shouldContinue: (round) => round === 0 })
    expect(report.findings.slice(0, 20)).toEqual([])
    expect(report.routes).toBeGreaterThan(18)
    expect(report.methods).toBeGreaterThan(55)
    // The responses must have many different statuses. This proves that the requests are diverse
    // and that some are valid.
    for (const status of [200, 201, 202, 204, 400, 401, 403, 404, 409, 413, 415])
      expect(report.statuses[status] ?? 0, `answers with ${status}`).toBeGreaterThan(0)
    expect((await residentBytes(process.pid)) - before).toBeLessThan(maxGrowthBytes)
  })

  it('hostile input cannot inject lines into an event stream', async () => {
    await restoreSite(stack)
    const { origin } = stack.demo
    const gatewayUrl = stack.gateways[0]!.url
    const operator = stack.operator()
    const visitor = await stack.newVisitor()
    const { conversationId, sessionId } = visitor.session
    await visitor.send('Hello')
    const texts = nastyTexts.filter((text) => text.isWellFormed() && text.length < 1000)

    // Some texts are rejected. Accepted texts must appear in data lines only.
    const calls = texts.flatMap((text) => {
      const agent = { displayName: text, avatarUrl: `https://shop.example/${text}` }
      return [
        visitor.send(text),
        operator.messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body: text }),
        operator.messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body: 'Hello', agent }),
        operator.messaging.setTyping({ conversationId, state: 1, agent: { displayName: text } }),
        operator.messaging.assignAgent({ conversationId, agent: { displayName: text } }),
        operator.commands.requestNavigation({ sessionId, url: `${origin}/${text}`, label: text }),
        operator.commands.requestScreenshot({ sessionId, purpose: text }),
      ]
    })
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(texts.length)
    await visitor.send('The end')

    const abort = new AbortController()
    const response = await fetch(`${gatewayUrl}/api/integrations/v1/widget/events?afterSequence=0`, {
      headers: {
        origin,
        'x-service-widget-version': '1.0',
        authorization: `Bearer ${visitor.session.accessGrant}`,
      },
      signal: abort.signal,
    })
    let stream = ''
    const reading = (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of response.body!) stream += decoder.decode(chunk, { stream: true })
    })().catch(() => {})
    await until('the whole stream', async () => stream.includes('"The end"'))
    await delay(50)
    abort.abort()
    await reading

    // Splits the stream at every character that a parser may accept as a line break.
    const lines = stream.split(/\r\n|[\r\n\0]/)
    for (const line of lines)
      expect(line).toMatch(/^(|: .*|retry: \d+|id: [\w-]+-\d+|event: [a-z.]+|data: \{"sequence":\d+,.*\})$/su)
    const count = (field: string) => lines.filter((line) => line.startsWith(`${field}: `)).length
    expect(count('data')).toBeGreaterThan(texts.length)
    expect([count('id'), count('event')]).toEqual([count('data'), count('data')])
    expect(lines.filter((line) => line.startsWith('event: session.'))).toEqual([])
  })
})
