import { beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { CoreContext } from '../context.ts'
import { operationKeys } from '../log/operation-keys.ts'
import { answer, send, type TestVisitor, testCores } from '../test-cores.ts'

const cores = testCores(2)
let a: CoreContext
let b: CoreContext
beforeAll(async () => {
  const opened = await cores.open()
  a = opened[0]!
  b = opened[1]!
})

const update = (core: CoreContext, { conversationId }: TestVisitor, upToSequence: number, state: string) =>
  core.states.update({ conversationId, upToSequence, state }, undefined)

const statesOf = async ({ credentials }: TestVisitor) =>
  (await a.messages.listForVisitor(credentials, { limit: 100 })).messages.map(
    ({ currentState, message }) => currentState ?? message?.state,
  )

const changesOf = async ({ conversationId }: TestVisitor) =>
  (await cores.log(conversationId)).filter(({ type }) => type === 'message.state.changed')

describe('delivery states', () => {
  it("advance the visitor's messages up to a sequence, each with an event, and match the history", async () => {
    const visitor = await cores.newVisitor()
    const first = await send(a, visitor, 'one')
    await answer(a, visitor, 'two')
    await send(b, visitor, 'three')
    expect(await update(b, visitor, 2, 'delivered')).toEqual({ changed: 1, remaining: 0 })
    expect(await statesOf(visitor)).toEqual(['delivered', 'sent', 'queued'])
    const { messageId } = first.event.message!
    expect(await changesOf(visitor)).toMatchObject([
      { data: { messageId, clientOperationId: 'one', state: 'delivered' } },
    ])
    expect(await update(a, visitor, 99, 'read')).toEqual({ changed: 2, remaining: 0 })
    expect(await statesOf(visitor)).toEqual(['read', 'sent', 'read'])
  })

  it('never go back, and a repeat changes nothing', async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'one')
    await update(a, visitor, 1, 'read')
    for (const state of ['sent', 'delivered', 'read']) {
      expect(await update(b, visitor, 1, state)).toEqual({ changed: 0, remaining: 0 })
    }
    expect(await changesOf(visitor)).toHaveLength(1)
    expect(await statesOf(visitor)).toEqual(['read'])
  })

  it('end at the furthest state under concurrent updates, with one event per step', async () => {
    const visitor = await cores.newVisitor()
    for (const text of ['one', 'two', 'three']) await send(a, visitor, text)
    await Promise.all(
      ['sent', 'read', 'delivered', 'read', 'sent', 'delivered'].map((state, index) =>
        update([a, b][index % 2]!, visitor, 3, state),
      ),
    )
    expect(await statesOf(visitor)).toEqual(['read', 'read', 'read'])
    const steps = (await changesOf(visitor)).map(({ data }) => `${data?.messageId} ${data?.state}`)
    expect(new Set(steps).size).toBe(steps.length)
  })

  it('change at most a hundred messages, oldest first, and return how many remain', async () => {
    const visitor = await cores.newVisitor()
    await Promise.all(Array.from({ length: 130 }, (_, index) => send(a, visitor, `m${index}`)))
    expect(await update(a, visitor, 130, 'read')).toEqual({ changed: 100, remaining: 30 })
    expect((await changesOf(visitor)).map(({ messageSequence }) => messageSequence)).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    )
    expect(await update(a, visitor, 130, 'read')).toEqual({ changed: 30, remaining: 0 })
  })

  it('whose event a dead process left are shown, and applied by reconciliation after ten seconds', async () => {
    const visitor = await cores.newVisitor()
    const { event } = await send(a, visitor, 'one')
    const { messageId } = event.message!
    await a.database.collections.events.insertOne({
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
    const unapplied = () => a.database.collections.events.countDocuments({ unapplied: true })
    expect(await statesOf(visitor)).toEqual(['delivered'])
    await b.states.reconcile()
    expect(await unapplied()).toBe(1)
    cores.advance(11_000)
    await Promise.all([a.states.reconcile(), b.states.reconcile()])
    expect(await statesOf(visitor)).toEqual(['delivered'])
    expect(await unapplied()).toBe(0)
    expect(await changesOf(visitor)).toHaveLength(1)
  })

  it('become sent when an operator lists the messages, but not when the visitor does', async () => {
    const visitor = await cores.newVisitor()
    for (const text of ['one', 'two']) await send(a, visitor, text)
    await statesOf(visitor)
    await b.messages.list(visitor.conversationId, { limit: 1 })
    await b.states.drain()
    expect(await statesOf(visitor)).toEqual(['sent', 'queued'])
    await Promise.all([a, b].map((core) => core.messages.list(visitor.conversationId, {})))
    await Promise.all([a.states.drain(), b.states.drain()])
    expect(await statesOf(visitor)).toEqual(['sent', 'sent'])
    expect(await changesOf(visitor)).toHaveLength(2)
  })

  it("do not change the message's event, so that every replay has the same bytes", async () => {
    const visitor = await cores.newVisitor()
    await send(a, visitor, 'one')
    await update(a, visitor, 1, 'read')
    expect((await cores.log(visitor.conversationId))[0]?.message?.state).toBe('queued')
  })

  it('reject other workspaces and unknown states', async () => {
    const { conversationId } = await cores.newVisitor()
    await expect(a.states.update({ conversationId, upToSequence: 1, state: 'read' }, 'ws_other')).rejects.toMatchObject(
      { code: ErrorCode.NOT_FOUND },
    )
    for (const state of ['queued', 'failed', 'READ', '']) {
      await expect(a.states.update({ conversationId, upToSequence: 1, state }, undefined)).rejects.toMatchObject({
        code: ErrorCode.VALIDATION_FAILED,
        issues: [{ path: '/state', rule: 'enum' }],
      })
    }
  })
})
