import { describe, expect, test } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

/** Starts a gateway whose core answers a read only after `answerNext` was called. */
async function startSlowGateway(sessions: number, env: Record<string, string> = {}) {
  const gateway = await startTestGateway({ env: { CORE_DEADLINE_MS: '120000', ...env } })
  const { core } = gateway
  const grants = Array.from({ length: sessions }, (_, index) => `grant-of-${index}`)
  for (const grant of grants) core.grants.set(grant, 'ok')
  const pending: (() => void)[] = []
  core.onList = () => new Promise<void>((resolve) => pending.push(resolve))
  return {
    ...gateway,
    pending,
    asked: () => core.calls.filter(({ method }) => method === 'listVisitorMessages').length,
    read: (session: number) =>
      gateway.call('GET', '/messages', { headers: { authorization: `Bearer ${grants[session]}` } }),
    async answerAll(running: Promise<Response>[]) {
      const answers = Promise.all(running)
      let isDone = false
      void answers.then(() => (isDone = true))
      await until('all answers', () => {
        for (const answer of pending.splice(0)) answer()
        return isDone
      })
      return answers
    },
  }
}

describe('concurrent reads', () => {
  itLong('of a session wait for its earlier ones, and all are answered', async () => {
    const { read, asked, answerAll, call, url } = await startSlowGateway(2)
    const running = Array.from({ length: 100 }, () => read(0))
    await expect.poll(asked).toBe(2)
    const other = read(1)
    await expect.poll(asked).toBe(3)
    expect((await call('POST', '/messages', { body: message() })).status).toBe(202)
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    expect(asked()).toBe(3)
    const answers = await answerAll([...running, other])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })

  test('of an address are limited together', async () => {
    const { read, asked, answerAll } = await startSlowGateway(20)
    const running = Array.from({ length: 60 }, (_, index) => read(index % 20))
    await expect.poll(asked).toBe(4)
    const answers = await answerAll(running)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  })

  itLong('get 429 with Retry-After if too many of a session wait', async () => {
    const { read, asked, answerAll } = await startSlowGateway(2, { RATE_LIMIT_FACTOR: '10' })
    const running = Array.from({ length: 2 + 120 + 6 }, () => read(0))
    const refused = await Promise.race(running)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    const other = read(1)
    await expect.poll(asked).toBe(3)
    const answers = await answerAll([...running, other])
    expect(answers.filter(({ status }) => status === 429).length).toBe(6)
    expect(answers.filter(({ status }) => status === 200).length).toBe(2 + 120 + 1)
  })

  test('of clients that have disconnected do not reach a core', async () => {
    const { asked, call, answerAll } = await startSlowGateway(1)
    const running = Array.from({ length: 2 }, () => call('GET', '/messages'))
    await expect.poll(asked).toBe(2)
    const controller = new AbortController()
    const gone = call('GET', '/messages', { signal: controller.signal }).catch(() => 'gone')
    // A later request on another connection shows that the gateway has read the first one.
    const later = call('GET', '/messages')
    controller.abort()
    expect(await gone).toBe('gone')
    await answerAll([...running, later])
    expect(asked()).toBeLessThanOrEqual(4)
  })
})
