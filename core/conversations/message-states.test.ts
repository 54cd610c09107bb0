import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import { logOf } from '../log/event-log.ts'
import { operationKeys } from '../log-event.ts'
import { bareCore } from '../test/core-with.ts'
import { answer, send, type TestVisitor, testCores } from '../test/cores.ts'
import { revokeSession } from '../visitors/sessions.ts'
import { reconcileMessageStates, recordReceipt, sentMarksOf, updateMessageStates } from './message-states.ts'
import { listMessages, listMessagesForVisitor } from './messages.ts'

const cores = testCores({ count: 2, started: false })

const update = (core: RunningCore, { conversationId }: TestVisitor, upToSequence: number, state: string) =>
  updateMessageStates(core, { conversationId, upToSequence, state }, undefined)

const statesOf = async ({ credentials }: TestVisitor) =>
  (await listMessagesForVisitor(cores.core, credentials, { limit: 100 })).messages.map(
    ({ currentState, message }) => currentState ?? message?.state,
  )

const changesOf = async ({ conversationId }: TestVisitor) =>
  (await cores.log(conversationId)).filter(({ type }) => type === 'message.state.changed')

it('messages are marked as sent once for all readers, and again after a failure', async () => {
  const visitor = await cores.newVisitor()
  const { event } = await send(cores.core, visitor, 'hello')
  const appended: string[] = []
  let isFailing = true
  const core = bareCore({ ...cores.core })
  logOf.set(core, {
    ...logOf(cores.core),
    append: (entry) => {
      appended.push(entry.type)
      return isFailing ? Promise.reject(new Error('the database is away')) : logOf(cores.core).append(entry)
    },
  })
  const states = sentMarksOf(core)
  for (let reader = 0; reader < 3; reader++) states.mark([event])
  await states.drain()
  expect(appended).toHaveLength(1)
  isFailing = false
  for (let reader = 0; reader < 3; reader++) {
    states.mark([event])
    await states.drain()
  }
  expect(appended).toHaveLength(2)
  expect(await statesOf(visitor)).toEqual(['sent'])
})

describe('updates of message states', () => {
  it('change the visitor’s messages up to a sequence, write an event for each message and appear in the history', async () => {
    const visitor = await cores.newVisitor()
    const first = await send(cores.core, visitor, 'one')
    await answer(cores.core, visitor, 'two')
    await send(cores.other, visitor, 'three')
    expect(await update(cores.other, visitor, 2, 'delivered')).toEqual({ changed: 1, remaining: 0 })
    expect(await statesOf(visitor)).toEqual(['delivered', 'sent', 'queued'])
    const { messageId } = first.event.message!
    expect(await changesOf(visitor)).toMatchObject([
      { data: { messageId, clientOperationId: 'one', state: 'delivered' } },
    ])
    expect(await update(cores.core, visitor, 99, 'read')).toEqual({ changed: 2, remaining: 0 })
    expect(await statesOf(visitor)).toEqual(['read', 'sent', 'read'])
  })

  it('change nothing if the new state is the current one or an earlier one', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'one')
    await update(cores.core, visitor, 1, 'read')
    for (const state of ['sent', 'delivered', 'read']) {
      expect(await update(cores.other, visitor, 1, state)).toEqual({ changed: 0, remaining: 0 })
    }
    expect(await changesOf(visitor)).toHaveLength(1)
    expect(await statesOf(visitor)).toEqual(['read'])
  })

  it('that run concurrently set the latest of their states, and write each event once', async () => {
    const visitor = await cores.newVisitor()
    for (const text of ['one', 'two', 'three']) await send(cores.core, visitor, text)
    await Promise.all(
      ['sent', 'read', 'delivered', 'read', 'sent', 'delivered'].map((state, index) =>
        update(cores.cores[index % 2]!, visitor, 3, state),
      ),
    )
    expect(await statesOf(visitor)).toEqual(['read', 'read', 'read'])
    const steps = (await changesOf(visitor)).map(({ data }) => `${data?.messageId} ${data?.state}`)
    expect(new Set(steps).size).toBe(steps.length)
  })

  itLong('change at most a hundred messages, oldest first, and return how many remain', async () => {
    const visitor = await cores.newVisitor()
    await Promise.all(Array.from({ length: 130 }, (_, index) => send(cores.core, visitor, `m${index}`)))
    expect(await update(cores.core, visitor, 130, 'read')).toEqual({ changed: 100, remaining: 30 })
    expect((await changesOf(visitor)).map(({ messageSequence }) => messageSequence)).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    )
    expect(await update(cores.core, visitor, 130, 'read')).toEqual({ changed: 30, remaining: 0 })
  })

  it('appear in the history before they are applied to the messages; reconciliation applies those older than ten seconds', async () => {
    const visitor = await cores.newVisitor()
    const { event } = await send(cores.core, visitor, 'one')
    const { messageId } = event.message!
    await cores.core.database.collections.events.insertOne({
      conversationId: visitor.conversationId,
      sequence: 2,
      type: 'message.state.changed',
      occurredAt: new Date(cores.now()),
      operationKey: operationKeys.messageState(messageId, 'delivered'),
      inputHash: 'delivered',
      data: { messageId, clientOperationId: 'one', state: 'delivered' },
      messageSequence: 1,
      unapplied: true,
    })
    const unapplied = () => cores.core.database.collections.events.countDocuments({ unapplied: true })
    expect(await statesOf(visitor)).toEqual(['delivered'])
    await reconcileMessageStates(cores.other)
    expect(await unapplied()).toBe(1)
    cores.advance(11)
    await Promise.all([reconcileMessageStates(cores.core), reconcileMessageStates(cores.other)])
    expect(await statesOf(visitor)).toEqual(['delivered'])
    expect(await unapplied()).toBe(0)
    expect(await changesOf(visitor)).toHaveLength(1)
  })

  it('to `sent` happen when an operator lists the messages, but not when the visitor lists them', async () => {
    const visitor = await cores.newVisitor()
    for (const text of ['one', 'two']) await send(cores.core, visitor, text)
    await statesOf(visitor)
    await listMessages(cores.other, visitor.conversationId, { limit: 1 })
    await sentMarksOf(cores.other).drain()
    expect(await statesOf(visitor)).toEqual(['sent', 'queued'])
    await Promise.all(cores.cores.map((core) => listMessages(core, visitor.conversationId, {})))
    await Promise.all(cores.cores.map((core) => sentMarksOf(core).drain()))
    expect(await statesOf(visitor)).toEqual(['sent', 'sent'])
    expect(await changesOf(visitor)).toHaveLength(2)
  })

  it("do not change the message's event, so that every replay sends the same bytes", async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'one')
    await update(cores.core, visitor, 1, 'read')
    expect((await cores.log(visitor.conversationId))[0]?.message?.state).toBe('queued')
  })

  it('are rejected for unknown states', async () => {
    const { conversationId } = await cores.newVisitor()
    for (const state of ['queued', 'failed', 'READ', '']) {
      await expect(
        updateMessageStates(cores.core, { conversationId, upToSequence: 1, state }, undefined),
      ).rejects.toMatchObject({
        code: 'ValidationFailed',
        issues: [{ path: '/state', rule: 'enum' }],
      })
    }
  })
})

const receive = (core: RunningCore, { credentials }: TestVisitor, upToSequence: number, state: string) =>
  recordReceipt(core, { credentials, upToSequence, state })

describe('receipts for agents’ messages', () => {
  it('write one event for the latest message and change all earlier messages of agents', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'one')
    await answer(cores.core, visitor, 'two')
    const { event } = await answer(cores.other, visitor, 'three')
    await receive(cores.other, visitor, 99, 'delivered')
    expect(await statesOf(visitor)).toEqual(['queued', 'delivered', 'delivered'])
    await receive(cores.core, visitor, 99, 'read')
    expect(await statesOf(visitor)).toEqual(['queued', 'read', 'read'])
    const { messageId } = event.message!
    expect((await changesOf(visitor)).map(({ data }) => data)).toEqual([
      { messageId, state: 'delivered' },
      { messageId, state: 'read' },
    ])
  })

  it('never move a state back, and a repeat writes nothing', async () => {
    const visitor = await cores.newVisitor()
    await answer(cores.core, visitor, 'one')
    await answer(cores.core, visitor, 'two')
    await receive(cores.core, visitor, 1, 'read')
    for (const state of ['delivered', 'read']) await receive(cores.other, visitor, 1, state)
    expect(await statesOf(visitor)).toEqual(['read', 'sent'])
    await receive(cores.other, visitor, 2, 'delivered')
    expect(await statesOf(visitor)).toEqual(['read', 'delivered'])
    expect(await changesOf(visitor)).toHaveLength(2)
  })

  it('write each event once and set the latest state if both cores get them at once', async () => {
    const visitor = await cores.newVisitor()
    for (const text of ['one', 'two', 'three']) await answer(cores.core, visitor, text)
    const states = ['delivered', 'read', 'read', 'delivered', 'read', 'delivered']
    await Promise.all(states.map((state, index) => receive(cores.cores[index % 2]!, visitor, 3, state)))
    expect(await statesOf(visitor)).toEqual(['read', 'read', 'read'])
    const written = (await changesOf(visitor)).map(({ data }) => data?.state)
    expect(new Set(written).size).toBe(written.length)
  })

  itLong('that are equal and arrive at the same time change the messages once', async () => {
    const visitor = await cores.newVisitor()
    for (const text of ['one', 'two', 'three']) await answer(cores.core, visitor, text)
    const counted = async () => {
      let calls = 0
      const core = cores.coreWithHook((call) => {
        calls = call
        return undefined
      })
      await Promise.all(Array.from({ length: 30 }, () => receive(core, visitor, 3, 'read')))
      return calls
    }
    const first = await counted()
    const repeated = await counted()
    expect(first - repeated).toBeLessThan(15)
    expect(await statesOf(visitor)).toEqual(['read', 'read', 'read'])
  })

  it('of a crashed core appear in the history before they are applied', async () => {
    const visitor = await cores.newVisitor()
    await answer(cores.core, visitor, 'one')
    const { event } = await answer(cores.core, visitor, 'two')
    const { messageId } = event.message!
    await logOf(cores.core).append({
      conversationId: visitor.conversationId,
      type: 'message.state.changed',
      operationKey: operationKeys.messageState(messageId, 'read'),
      inputHash: 'read',
      data: { messageId, state: 'read' },
      messageSequence: 2,
      unapplied: true,
    })
    expect(await statesOf(visitor)).toEqual(['read', 'read'])
  })

  it('are rejected for a state other than `delivered` and `read`, and after the session was revoked', async () => {
    const visitor = await cores.newVisitor()
    await answer(cores.core, visitor, 'one')
    for (const state of ['sent', 'failed', ''])
      await expect(receive(cores.core, visitor, 1, state)).rejects.toMatchObject({ code: 'ValidationFailed' })
    await revokeSession(cores.core, visitor.sessionId)
    await expect(receive(cores.core, visitor, 1, 'read')).rejects.toMatchObject({ code: 'SessionRevoked' })
    expect(await changesOf(visitor)).toEqual([])
  })
})
