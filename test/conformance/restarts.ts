import { randomUUID } from 'node:crypto'
import { beforeAll, expect } from 'vitest'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { type Answer, bearer, message } from './client.ts'
import { rule } from './rule.ts'
import { type StackWithClients, waitForStreams } from './suite.ts'

export interface RestartedStack extends StackWithClients {
  /** Ends all cores. */
  endCores(): Promise<unknown>
  /** Starts the first core, and restarts the first gateway. */
  restart(): Promise<unknown>
}

/**
 * Tests of contract sections 1 and 3: an outage of all cores, and a restart. The rules share one
 * outage.
 */
export function restartRules(restarted: () => RestartedStack): void {
  let visitor: Visitor
  let firsts: Answer[]
  let refusals: PromiseSettledResult<Answer>[]
  let repeats: Answer[]

  beforeAll(async () => {
    const { client, stack, endCores, restart } = restarted()
    visitor = await client.visitor()
    const headers = bearer(visitor)
    const body = { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'restart' }
    const createRequest = { headers: { 'idempotency-key': randomUUID() }, body }
    const sendRequest = { headers: { ...headers, 'idempotency-key': 'op' }, body: message('op') }
    const send = async () => [
      await client.call('POST', '/sessions', createRequest),
      await client.call('POST', '/messages', sendRequest),
    ]
    firsts = await send()
    await endCores()
    refusals = await Promise.allSettled([
      client.fails('ServiceUnavailable', 'POST', '/messages', {
        headers: { ...headers, 'idempotency-key': 'refused' },
        body: message('refused'),
      }),
      client.fails('ServiceUnavailable', 'GET', '/messages', { headers }),
    ])
    await restart()
    await until('the core to be back', () => visitor.history().catch(() => undefined))
    await waitForStreams(stack, visitor)
    repeats = await send()
  })

  rule('E.ServiceUnavailable', async () => {
    for (const refusal of refusals) if (refusal.status === 'rejected') throw refusal.reason
  })

  rule('C3.14', async () => {
    const { messageId, sequence } = firsts[1]!.body
    expect(await visitor.history()).toMatchObject([{ messageId, sequence, body: 'Hello' }])
  })

  rule('C1.36', async () => {
    for (const [index, repeat] of repeats.entries()) {
      expect(repeat.body).toEqual(firsts[index]!.body)
      expect(repeat.headers.get('idempotency-replayed')).toBe('true')
    }
  })
}
