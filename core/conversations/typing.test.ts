import { describe, expect, it, vi } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { codeOf, send, testCores } from '../test/cores.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { endOverdueTyping, setTypingOfAgent, setTypingOfVisitor, typingEndsOf } from './typing.ts'

const cores = testCores({ count: 2, started: false, frozen: true })
const alone = testCores({ frozen: true })

const typesOf = async (conversationId: string) => (await cores.log(conversationId)).map(({ type }) => type)
const agent = { displayName: 'Ada' }

describe('typing', () => {
  it('writes a start event and an end event, each with the author and its own sequence', async () => {
    const { conversationId, credentials } = await cores.newVisitor()
    await setTypingOfVisitor(cores.core, credentials, 'started')
    await setTypingOfVisitor(cores.other, credentials, 'stopped')
    expect(await cores.log(conversationId)).toMatchObject([
      { sequence: 1, type: 'typing.started', transient: true, data: { author: { kind: 'visitor' } } },
      { sequence: 2, type: 'typing.stopped', transient: true, data: { author: { kind: 'visitor' } } },
    ])
  })

  it('that is reported again writes a new start event only after half of its lifetime has passed', async () => {
    const { conversationId, credentials } = await cores.newVisitor()
    for (const core of [cores.core, cores.other, cores.core]) await setTypingOfVisitor(core, credentials, 'started')
    expect(await typesOf(conversationId)).toEqual(['typing.started'])
    cores.advance(5)
    await setTypingOfVisitor(cores.other, credentials, 'started')
    expect(await typesOf(conversationId)).toEqual(['typing.started', 'typing.started'])
    cores.advance(5)
    await endOverdueTyping(cores.core)
    expect(await typesOf(conversationId)).toHaveLength(2)
    cores.advance(3.001)
    await endOverdueTyping(cores.core)
    expect((await typesOf(conversationId)).at(-1)).toBe('typing.stopped')
  })

  it('writes one end event after 8 seconds, although several processes look for expired typing', async () => {
    const { conversationId } = await cores.newVisitor()
    await setTypingOfAgent(cores.core, { conversationId, state: 'started', agent }, undefined)
    cores.advance(7.999)
    await endOverdueTyping(cores.other)
    expect(await typesOf(conversationId)).toEqual(['typing.started'])
    cores.advance(0.002)
    await Promise.all([cores.core, cores.other, cores.core, cores.other].map((core) => endOverdueTyping(core)))
    expect(await typesOf(conversationId)).toEqual(['typing.started', 'typing.stopped'])
  })

  it('is ended by another process if the first process died before it wrote the end event', async () => {
    const { conversationId } = await cores.newVisitor()
    const { typing } = cores.core.database.collections
    const turn = {
      turnId: 'typ_left',
      conversationId,
      author: { kind: 'agent' as const, displayName: 'Ada' },
      renewals: 0,
      renewedAt: new Date(cores.now()),
      endsAt: new Date(cores.now() + 8000),
    }
    await typing.insertOne({ _id: `${conversationId} agent Ada`, ...turn, ending: true })
    await setTypingOfAgent(cores.other, { conversationId, state: 'started', agent }, undefined)
    expect(await typesOf(conversationId)).toEqual(['typing.started', 'typing.stopped', 'typing.started'])
  })

  it('ends when its author sends a message, but not when another author does', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, credentials } = visitor
    await setTypingOfVisitor(cores.core, credentials, 'started')
    await setTypingOfAgent(cores.core, { conversationId, state: 'started', agent }, undefined)
    await send(cores.other, visitor, 'hello')
    await typingEndsOf(cores.other).drain()
    expect((await cores.log(conversationId)).map(({ type, data }) => [type, data?.author?.kind])).toEqual([
      ['typing.started', 'visitor'],
      ['typing.started', 'agent'],
      ['message.accepted', undefined],
      ['typing.stopped', 'visitor'],
    ])
  })

  it('ends on a core that runs alone, although the message is written before the start event', async () => {
    const visitor = await alone.newVisitor()
    const { typing } = alone.core.db
    await until('the core knows that it runs alone', () => wakeupsOf(alone.core).isAlone())
    // Typing from before the start of the core has expired.
    alone.advance(9)
    const insertOne = typing.insertOne.bind(typing)
    vi.spyOn(typing, 'insertOne').mockImplementationOnce(async (turn, options) => {
      const inserted = await insertOne(turn, options)
      await send(alone.core, visitor, 'hello')
      await typingEndsOf(alone.core).drain()
      return inserted
    })
    await setTypingOfVisitor(alone.core, visitor.credentials, 'started')
    expect((await alone.log(visitor.conversationId)).map(({ type }) => type)).toEqual([
      'message.accepted',
      'typing.started',
      'typing.stopped',
    ])
  })

  itLong('has alternating start and end events under concurrent calls', async () => {
    const { conversationId } = await cores.newVisitor()
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        setTypingOfAgent(
          cores.cores[index % 2]!,
          { conversationId, state: index % 3 === 0 ? 'stopped' : 'started', agent },
          undefined,
        ),
      ),
    )
    cores.advance(8.001)
    await Promise.all([endOverdueTyping(cores.core), endOverdueTyping(cores.other)])
    const types = await typesOf(conversationId)
    expect(types.length).toBeGreaterThan(0)
    expect(types).toEqual(types.map((_, index) => (index % 2 === 0 ? 'typing.started' : 'typing.stopped')))
    expect(types.at(-1)).toBe('typing.stopped')
  })

  it('is rejected for an agent without a name and if the installation disables typing', async () => {
    const { conversationId } = await cores.newVisitor()
    await expect(setTypingOfAgent(cores.core, { conversationId, state: 'started' }, undefined)).rejects.toMatchObject({
      code: 'ValidationFailed',
      issues: [{ path: '/agent/displayName', rule: 'minLength' }],
    })
    const quiet = await cores.newVisitor(await cores.newSite({ capabilities: { typing: false } }))
    expect(await codeOf(setTypingOfVisitor(cores.core, quiet.credentials, 'started'))).toBe('RouteNotAdvertised')
    expect(await typesOf(conversationId)).toEqual([])
  })
})
