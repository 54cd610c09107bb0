import { beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { CoreContext } from '../context.ts'
import { send, testCores } from '../test-cores.ts'

const cores = testCores(2)
let a: CoreContext
let b: CoreContext
beforeAll(async () => {
  const opened = await cores.open()
  a = opened[0]!
  b = opened[1]!
})

const typesOf = async (conversationId: string) => (await cores.log(conversationId)).map(({ type }) => type)
const agent = { displayName: 'Ada' }

describe('typing', () => {
  it('writes a start and an end with the author, each with its own sequence', async () => {
    const { conversationId, credentials } = await cores.newVisitor()
    await a.typing.setByVisitor(credentials, 'started')
    await b.typing.setByVisitor(credentials, 'stopped')
    expect(await cores.log(conversationId)).toMatchObject([
      { sequence: 1, type: 'typing.started', transient: true, data: { author: { kind: 'visitor' } } },
      { sequence: 2, type: 'typing.stopped', transient: true, data: { author: { kind: 'visitor' } } },
    ])
  })

  it('writes no repeated start, except a renewal in the second half of its lifetime', async () => {
    const { conversationId, credentials } = await cores.newVisitor()
    for (const core of [a, b, a]) await core.typing.setByVisitor(credentials, 'started')
    expect(await typesOf(conversationId)).toEqual(['typing.started'])
    cores.advance(5000)
    await b.typing.setByVisitor(credentials, 'started')
    expect(await typesOf(conversationId)).toEqual(['typing.started', 'typing.started'])
    cores.advance(5000)
    await a.typing.endOverdue()
    expect(await typesOf(conversationId)).toHaveLength(2)
    cores.advance(3001)
    await a.typing.endOverdue()
    expect((await typesOf(conversationId)).at(-1)).toBe('typing.stopped')
  })

  it('expires once after 8 seconds, although several processes check it', async () => {
    const { conversationId } = await cores.newVisitor()
    await a.typing.setByAgent({ conversationId, state: 'started', agent }, undefined)
    cores.advance(7900)
    await b.typing.endOverdue()
    expect(await typesOf(conversationId)).toEqual(['typing.started'])
    cores.advance(101)
    await Promise.all([a, b, a, b].map((core) => core.typing.endOverdue()))
    expect(await typesOf(conversationId)).toEqual(['typing.started', 'typing.stopped'])
  })

  it('left by a dead process before its end was written is finished by another', async () => {
    const { conversationId } = await cores.newVisitor()
    const { typing } = a.database.collections
    const turn = {
      turnId: 'typ_left',
      conversationId,
      author: { kind: 'agent' as const, displayName: 'Ada' },
      renewals: 0,
      renewedAt: new Date(cores.now()),
      endsAt: new Date(cores.now() + 8000),
    }
    await typing.insertOne({ _id: `${conversationId} agent Ada`, ...turn, ending: true })
    await b.typing.setByAgent({ conversationId, state: 'started', agent }, undefined)
    expect(await typesOf(conversationId)).toEqual(['typing.started', 'typing.stopped', 'typing.started'])
  })

  it('ends with a message of its author only', async () => {
    const visitor = await cores.newVisitor()
    const { conversationId, credentials } = visitor
    await a.typing.setByVisitor(credentials, 'started')
    await a.typing.setByAgent({ conversationId, state: 'started', agent }, undefined)
    await send(b, visitor, 'hello')
    await b.typing.drain()
    expect((await cores.log(conversationId)).map(({ type, data }) => [type, data?.author?.kind])).toEqual([
      ['typing.started', 'visitor'],
      ['typing.started', 'agent'],
      ['message.accepted', undefined],
      ['typing.stopped', 'visitor'],
    ])
  })

  it('alternates starts and ends under concurrent calls', async () => {
    const { conversationId } = await cores.newVisitor()
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        [a, b][index % 2]!.typing.setByAgent(
          { conversationId, state: index % 3 === 0 ? 'stopped' : 'started', agent },
          undefined,
        ),
      ),
    )
    cores.advance(8001)
    await Promise.all([a.typing.endOverdue(), b.typing.endOverdue()])
    const types = await typesOf(conversationId)
    expect(types.length).toBeGreaterThan(0)
    expect(types).toEqual(types.map((_, index) => (index % 2 === 0 ? 'typing.started' : 'typing.stopped')))
    expect(types.at(-1)).toBe('typing.stopped')
  })

  it('is rejected for another workspace, without a name, and if the installation has no typing', async () => {
    const { conversationId } = await cores.newVisitor()
    const request = { conversationId, state: 'started' as const, agent }
    await expect(a.typing.setByAgent(request, 'ws_other')).rejects.toMatchObject({ code: ErrorCode.NOT_FOUND })
    await expect(a.typing.setByAgent({ conversationId, state: 'started' }, undefined)).rejects.toMatchObject({
      code: ErrorCode.VALIDATION_FAILED,
      issues: [{ path: '/agent/displayName', rule: 'minLength' }],
    })
    const quiet = await cores.newVisitor(await cores.newSite({ capabilities: { typing: false } }))
    await expect(a.typing.setByVisitor(quiet.credentials, 'started')).rejects.toMatchObject({
      code: ErrorCode.ROUTE_NOT_ADVERTISED,
    })
    expect(await typesOf(conversationId)).toEqual([])
  })
})
