import { describe, expect, it } from 'vitest'
import { storageFor } from '../../browser/storage.ts'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, server } = serverPerTest()

describe('C7.10 the failure version of a message', () => {
  const refusal = { status: 400, code: 'ValidationFailed', retryable: false }
  const refuse = (count: number) => server.set('pk_friendly', { refuseSends: Array(count).fill(refusal) })

  it('grows by one with each failure, also after a reload, and an older one is refused', async () => {
    const storage = storageFor('memory')
    const before = createClientHarness(server, 'pk_friendly', { clock, storage })
    await before.started()
    refuse(3)
    const { clientOperationId: id } = before.client.sendMessage('Hello')
    const version = (harness: typeof before) => harness.client.messages()[0]?.failureVersion
    expect(version(before)).toBeUndefined()
    await until(() => version(before) === 1)
    expect(before.client.retryMessage(id!, { failureVersion: 1 })).toBe(true)
    expect(before.client.retryMessage(id!, { failureVersion: 1 })).toBe(false)
    await until(() => version(before) === 2)
    before.client.stop()

    const after = createClientHarness(server, 'pk_friendly', { clock, storage })
    await after.started()
    expect(version(after)).toBe(2)
    expect(() => after.client.retryMessage(id!, { failureVersion: 1 })).toThrow(
      expect.objectContaining({ name: 'WidgetError', code: 'failure_outdated' }),
    )
    expect([after.states(), server.seen('POST /messages').length]).toEqual([['failed'], 2])
    expect(after.client.retryMessage(id!)).toBe(true)
    await until(() => version(after) === 3)
    expect(after.client.retryMessage(id!, { failureVersion: 3 })).toBe(true)
    await until(() => after.states()[0] === 'queued')
  })

  it('counts a failure that the service reports for an accepted message', async () => {
    const harness = createClientHarness(server, 'pk_friendly', { clock })
    await harness.started()
    harness.client.sendMessage('Hello')
    await until(() => harness.states()[0] === 'queued')
    const { messageId } = harness.client.messages()[0]!
    server.conversation('pk_friendly').emit('message.state.changed', { messageId, state: 'failed' })
    await until(() => harness.states()[0] === 'failed')
    expect(harness.client.messages()[0]?.failureVersion).toBe(1)
  })
})
