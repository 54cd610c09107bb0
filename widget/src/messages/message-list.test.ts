import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../../test/support/for-all.ts'
import type { ServiceMessage } from '../vocabulary/gen/wire.ts'
import type { DeliveryStatus } from '../vocabulary/types.ts'
import { createMessageList } from './message-list.ts'

function serverMessage(
  sequence: number,
  clientOperationId?: string,
  state: ServiceMessage['state'] = 'queued',
): ServiceMessage {
  return {
    messageId: `msg_${sequence}`,
    clientOperationId,
    conversationId: 'cnv_1',
    sequence,
    author: { kind: clientOperationId ? 'visitor' : 'agent' },
    body: `body ${sequence}`,
    contentType: 'text',
    state,
    createdAt: '2026-11-20T12:00:00.000Z',
  }
}

const local = (clientOperationId: string) => ({
  clientOperationId,
  author: { kind: 'visitor' as const },
  body: clientOperationId,
  contentType: 'text',
  deliveryStatus: 'pending' as const,
  createdAt: '2026-11-20T12:00:00.000Z',
})

describe('the message list', () => {
  it('the message list contains each message once, sorted, even if all data arrives twice and in random order', () => {
    const own = [1, 3, 5]
    const answers = own.map((sequence) => {
      const { messageId, clientOperationId, conversationId, state } = serverMessage(sequence, `op_${sequence}`)
      return { messageId, clientOperationId, conversationId, sequence, state }
    })
    const events = [1, 2, 3, 4, 5].map((sequence) =>
      serverMessage(sequence, own.includes(sequence) ? `op_${sequence}` : undefined),
    )
    const updates = [...answers, ...events, ...events]
    forAll([fc.shuffledSubarray(updates, { minLength: updates.length })], {}, (arrivals) => {
      const list = createMessageList()
      for (const sequence of own) list.addLocal(local(`op_${sequence}`))
      for (const arrival of arrivals) list.merge(arrival)
      expect(list.all().map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
      expect(new Set(list.all().map(({ key }) => key)).size).toBe(5)
    })
  })

  it('an entry with a message id and an entry with an operation id are merged when data with both ids arrives', () => {
    const list = createMessageList()
    list.merge(serverMessage(1))
    list.addLocal(local('op_1'))
    list.merge(serverMessage(1, 'op_1'))
    expect(list.all()).toHaveLength(1)
    expect(list.all()[0]).toMatchObject({ key: 'op_1', messageId: 'msg_1' })
  })

  it('the message list keeps two messages with different message ids apart, even if they share an operation id', () => {
    const list = createMessageList()
    list.merge(serverMessage(1, 'op_1'))
    list.merge({ ...serverMessage(2, 'op_1'), sessionId: 'ses_other' })
    expect(list.all()).toHaveLength(2)
  })

  it('the message list keeps unsent messages last, and sorts a message by its sequence number once it is accepted', () => {
    const list = createMessageList()
    list.addLocal(local('op_2'))
    list.merge(serverMessage(1))
    list.merge(serverMessage(3))
    expect(list.all().map(({ key }) => key)).toEqual(['msg_1', 'msg_3', 'op_2'])
    list.merge(serverMessage(2, 'op_2'))
    expect(list.all().map(({ key }) => key)).toEqual(['msg_1', 'op_2', 'msg_3'])
  })

  it.each<[ServiceMessage['state'], DeliveryStatus, DeliveryStatus]>([
    ['read', 'queued', 'read'],
    ['delivered', 'sent', 'delivered'],
    ['queued', 'delivered', 'delivered'],
    ['sent', 'failed', 'failed'],
    ['read', 'failed', 'read'],
  ])('if a message in state %s receives the state %s, its state is %s afterwards', (first, second, expected) => {
    const list = createMessageList()
    list.merge(serverMessage(1, 'op_1', first))
    list.setStatus('msg_1', second)
    expect(list.all()[0]?.deliveryStatus).toBe(expected)
  })

  it('an accepted message keeps its state if its send fails later', () => {
    const list = createMessageList()
    list.addLocal(local('op_1'))
    list.merge(serverMessage(1, 'op_1'))
    list.patchLocal('op_1', { deliveryStatus: 'failed', error: { code: 'network_error', recoverable: true } })
    expect(list.all()[0]?.deliveryStatus).toBe('queued')
    expect(list.all()[0]?.error).toBeUndefined()
  })
})
