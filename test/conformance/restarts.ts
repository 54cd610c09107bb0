import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import { bearer, message } from './client.ts'
import { rule } from './rule.ts'
import { type StackWithClients, waitForStreams } from './suite.ts'

export interface RestartedStack extends StackWithClients {
  /** Ends all cores. */
  endCores(): Promise<unknown>
  /** Starts the first core, and restarts the first gateway. */
  restart(): Promise<unknown>
}

/** Tests of contract sections 1 and 3: an outage of all cores, and a restart. The rules share one outage. */
export function restartRules(restarted: () => RestartedStack): void {
  let outage: ReturnType<typeof runOutage> | undefined
  const afterOutage = () => {
    outage ??= runOutage()
    return outage
  }

  /** Makes calls before, during and after an outage of all cores. */
  async function runOutage() {
    const { client, stack, endCores, restart } = restarted()
    const visitor = await client.visitor()
    const headers = bearer(visitor)
    const body = { publicSiteKey: stack.demo.siteKey, clientInstanceId: 'restart' }
    const createRequest = { headers: { 'idempotency-key': randomUUID() }, body }
    const sendRequest = { headers: { ...headers, 'idempotency-key': 'op' }, body: message('op') }
    const send = async () => [
      await client.call('POST', '/sessions', createRequest),
      await client.call('POST', '/messages', sendRequest),
    ]
    const firsts = await send()
    await endCores()
    const refusals = await Promise.allSettled([
      client.fails('ServiceUnavailable', 'POST', '/messages', {
        headers: { ...headers, 'idempotency-key': 'refused' },
        body: message('refused'),
      }),
      client.fails('ServiceUnavailable', 'GET', '/messages', { headers }),
    ])
    await restart()
    await until('the core to be back', () => visitor.history().catch(() => undefined))
    await waitForStreams(stack, visitor)
    return { visitor, firsts, refusals, repeats: await send() }
  }

  rule('E.ServiceUnavailable', async () => {
    const { refusals } = await afterOutage()
    for (const refusal of refusals) if (refusal.status === 'rejected') throw refusal.reason
  })

  rule('C3.14', async () => {
    const { visitor, firsts } = await afterOutage()
    const { messageId, sequence } = firsts[1]!.body
    expect(await visitor.history()).toMatchObject([{ messageId, sequence, body: 'Hello' }])
  })

  rule('C1.36', async () => {
    const { firsts, repeats } = await afterOutage()
    for (const [index, repeat] of repeats.entries()) {
      expect(repeat.body).toEqual(firsts[index]!.body)
      expect(repeat.headers.get('idempotency-replayed')).toBe('true')
    }
  })
}
