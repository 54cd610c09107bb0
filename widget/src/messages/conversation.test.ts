import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAll } from '../../../test/support/for-all.ts'
import { runs } from '../../../test/support/is-long.ts'
import type { ServiceMessage } from '../vocabulary/gen/wire.ts'
import type { DeliveryStatus, WidgetEventMap } from '../vocabulary/types.ts'
import { createConversation } from './conversation.ts'

const createdAt = '2026-11-20T12:00:00.000Z'
const progress: DeliveryStatus[] = ['pending', 'queued', 'sent', 'delivered', 'read']
/** Sequence numbers of the test messages. Odd numbers are messages of the visitor. */
const sequences = [1, 2, 3, 4, 5, 6]
const isOwn = (sequence: number) => sequence % 2 === 1

function serverMessage(sequence: number, state: ServiceMessage['state']): ServiceMessage {
  return {
    messageId: `msg_${sequence}`,
    conversationId: 'cnv_1',
    sequence,
    author: { kind: isOwn(sequence) ? 'visitor' : 'agent' },
    body: `body ${sequence}`,
    contentType: 'text',
    state,
    createdAt,
    ...(isOwn(sequence) && { clientOperationId: `op_${sequence}`, sessionId: 'ses_1' }),
  }
}

type Update =
  | { source: 'answer'; sequence: number }
  | { source: 'event'; sequence: number }
  | { source: 'page'; from: number; to: number; missed: boolean; state: ServiceMessage['state'] }
  | { source: 'state'; sequence: number; state: ServiceMessage['state'] }
  | { source: 'own'; sequence: number; state: 'retrying' | 'failed' }

const sequence = fc.constantFrom(...sequences)
const later = fc.constantFrom<ServiceMessage['state']>('queued', 'sent', 'delivered', 'read')
const updates: fc.Arbitrary<Update> = fc.oneof(
  fc.record({ source: fc.constant('answer' as const), sequence }),
  fc.record({ source: fc.constant('event' as const), sequence }),
  fc.record({ source: fc.constant('page' as const), from: sequence, to: sequence, missed: fc.boolean(), state: later }),
  fc.record({ source: fc.constant('state' as const), sequence, state: later }),
  fc.record({
    source: fc.constant('own' as const),
    sequence,
    state: fc.constantFrom('retrying' as const, 'failed' as const),
  }),
)

describe('the conversation', () => {
  it('the conversation emits each message once, in order, and never moves a delivery state back, even if data arrives in random order', () => {
    forAll([fc.array(updates, { maxLength: 40 })], runs(2_000, 10), (all) => {
      const announced: string[] = []
      const { messages, ...conversation } = createConversation({
        emit(name, payload) {
          if (name === 'message.accepted' || name === 'message.received') {
            announced.push((payload as WidgetEventMap['message.received']).message.messageId!)
          }
        },
      })
      for (const own of sequences.filter(isOwn)) {
        const input = { clientOperationId: `op_${own}`, body: `body ${own}`, contentType: 'text' as const }
        conversation.addOwn({ input, createdAt })
      }
      const reached = new Map<string, number>()
      for (const one of all) {
        take(conversation, one)
        const held = messages.all()
        expect(new Set(held.map(({ body }) => body)).size).toBe(held.length)
        expect(new Set(held.map(({ key }) => key)).size).toBe(held.length)
        const accepted = held.flatMap((message) => message.sequence ?? [])
        expect(accepted).toEqual(accepted.toSorted((a, b) => a - b))
        expect(held.slice(accepted.length).every((message) => message.sequence === undefined)).toBe(true)
        for (const { body, deliveryStatus, messageId } of held) {
          if (!messageId) continue
          const now = progress.indexOf(deliveryStatus)
          expect(now).toBeGreaterThanOrEqual(reached.get(body) ?? progress.indexOf('queued'))
          reached.set(body, now)
        }
      }
      expect(new Set(announced).size).toBe(announced.length)
      conversation.merge(serverMessage(6, 'queued'), true)
      for (const rest of sequences) conversation.merge(serverMessage(rest, 'queued'), true)
      expect(messages.all().map((message) => message.sequence)).toEqual(sequences)
    })
  })

  it('the conversation counts only agents’ messages after the last read message as unread', () => {
    const counts: number[] = []
    const conversation = createConversation({
      emit(name, payload) {
        if (name === 'unread.changed') counts.push((payload as WidgetEventMap['unread.changed']).count)
      },
    })
    conversation.setReadTo(2)
    for (const each of sequences) conversation.merge(serverMessage(each, 'queued'), true)
    conversation.emitChanged()
    expect(conversation.unread()).toBe(2)
    conversation.setReadTo(6)
    expect(counts).toEqual([2, 0])
  })
})

describe('a message that grows', () => {
  const grow = (length: number, more: object = {}) => ({
    ...serverMessage(2, 'sent'),
    author: { kind: 'bot' as const, displayName: 'Robo' },
    body: 'abcdefghij'.slice(0, length),
    ...more,
  })
  function growing() {
    const received: string[] = []
    const gaps: number[] = []
    const conversation = createConversation({
      emit(name, payload) {
        if (name === 'message.received') received.push((payload as WidgetEventMap['message.received']).message.body)
      },
    })
    const handle = (type: string, data: object) =>
      conversation.handleEvent(
        { id: '', sequence: 2, type, occurredAt: createdAt, data: data as never },
        () => {},
        (sequence) => gaps.push(sequence),
      )
    const part = (offset: number, text: string) => handle('message.grew', { messageId: 'msg_2', offset, text })
    const shown = () => conversation.messages.all().map(({ body }) => body)
    return { conversation, received, gaps, handle, part, shown }
  }

  it('counts as unread when it ends, because nobody has read its end before', () => {
    const { conversation, handle } = growing()
    conversation.setReadTo(1)
    handle('message.received', { message: grow(3, { growing: true }) })
    expect(conversation.unread()).toBe(0)
    handle('message.completed', { message: grow(10) })
    expect(conversation.unread()).toBe(1)
  })

  it('shows each part once, never a gap, and is announced once, when it ends', () => {
    const { conversation, received, gaps, handle, part, shown } = growing()
    handle('message.received', { message: grow(2, { growing: true }) })
    part(2, 'cd')
    part(0, 'abcde')
    part(1, 'bc')
    expect(shown()).toEqual(['abcde'])
    part(7, 'hi')
    expect([shown(), gaps]).toEqual([['abcde'], [2]])
    conversation.merge(grow(9, { growing: true }), true)
    // A page that was read earlier arrives late.
    conversation.merge(grow(4, { growing: true }), true)
    expect([shown(), received]).toEqual([['abcdefghi'], []])
    handle('message.completed', { message: grow(10) })
    conversation.merge(grow(6, { growing: true }), true)
    part(4, 'efg')
    expect([shown(), received]).toEqual([['abcdefghij'], ['abcdefghij']])
    expect(conversation.messages.all()[0]?.growing).toBeUndefined()
  })
})

function take(conversation: Omit<ReturnType<typeof createConversation>, 'messages'>, one: Update) {
  if (one.source === 'answer') {
    const { clientOperationId, messageId, sessionId, conversationId, state } = serverMessage(one.sequence, 'queued')
    if (!clientOperationId || !sessionId) return
    const ids = { clientOperationId, messageId, sessionId, conversationId }
    conversation.mergeAnswer({ ...ids, sequence: one.sequence, state: state as 'queued', acceptedAt: createdAt })
  } else if (one.source === 'event') {
    const type = isOwn(one.sequence) ? 'message.accepted' : 'message.received'
    const data = { message: serverMessage(one.sequence, 'queued') }
    conversation.handleEvent(
      { id: `e1-${one.sequence}`, sequence: one.sequence, type, occurredAt: createdAt, data },
      () => {},
      () => {},
    )
  } else if (one.source === 'page') {
    const page = sequences.filter((each) => each >= one.from && each <= one.to)
    for (const each of page) conversation.merge(serverMessage(each, one.state), one.missed)
  } else if (one.source === 'state') {
    const data = { messageId: `msg_${one.sequence}`, state: one.state }
    const type = 'message.state.changed'
    conversation.handleEvent(
      { id: 'e1-9', sequence: 9, type, occurredAt: createdAt, data },
      () => {},
      () => {},
    )
  } else {
    const input = { clientOperationId: `op_${one.sequence}`, body: '', contentType: 'text' as const }
    conversation.setOwnStatus({ input, createdAt }, one.state, { code: 'network_error', recoverable: true })
  }
}
