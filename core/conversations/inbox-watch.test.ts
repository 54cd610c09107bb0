import { beforeAll, describe, expect, it } from 'vitest'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { until } from '../../test/support/until.ts'
import { createBus } from '../bus.ts'
import type { CoreContext } from '../context.ts'
import { watchConversations } from '../rpc/watch-conversations.ts'
import { send, testCores } from '../test-cores.ts'
import { createInboxWatch } from './inbox-watch.ts'

const cores = testCores(1, { INBOX_QUEUE_MAX: 5 })
let core: CoreContext
beforeAll(async () => {
  core = (await cores.open())[0]!
})

describe('a watched inbox', () => {
  it('says first that it is there, then what changes, and ends when it is told to', async () => {
    const visitor = await cores.newVisitor()
    const abort = new AbortController()
    const frames = watchConversations(core, visitor.workspaceId, abort.signal)
    expect((await frames.next()).value?.frame.case).toBe('ready')
    await send(core, visitor, 'hello')
    const { value } = await frames.next()
    expect(value?.frame).toMatchObject({
      case: 'changed',
      value: { conversation: { conversationId: visitor.conversationId, lastSequence: 1 }, events: [{ sequence: 1 }] },
    })
    abort.abort()
    expect(await frames.next()).toEqual({ done: true, value: undefined })
  })

  it('that is not read is ended with resource_exhausted, and the others go on', async () => {
    const visitor = await cores.newVisitor()
    const { signal } = new AbortController()
    const slow = watchConversations(core, undefined, signal)
    const quick = watchConversations(core, undefined, signal)
    await Promise.all([slow.next(), quick.next()])
    for (let index = 0; index < 8; index += 1) {
      await send(core, visitor, `m${index}`)
      expect((await quick.next()).value?.frame.case).toBe('changed')
    }
    await expect(slow.next()).rejects.toMatchObject({ code: ErrorCode.RATE_LIMITED, retryAfter: 1 })
    await quick.return(undefined)
  })

  it('finds the message that no wake-up told of', async () => {
    const visitor = await cores.newVisitor()
    const { events, conversations } = core.stores
    const deaf = createInboxWatch({ events, conversations, bus: createBus(), logger: core.logger, now: cores.now })
    const told: string[] = []
    const leave = deaf.add({
      workspaceId: visitor.workspaceId,
      ready() {},
      changed: ({ conversation }) => void told.push(conversation.conversationId),
    })
    await send(core, visitor, 'hello')
    await until('the inbox entry', async () => {
      await deaf.check()
      return told.includes(visitor.conversationId)
    })
    await deaf.check()
    expect(told.filter((id) => id === visitor.conversationId)).toHaveLength(1)
    leave()
    await send(core, visitor, 'again')
    await deaf.check()
    expect(told.filter((id) => id === visitor.conversationId)).toHaveLength(1)
  })

  it('says that it is there again when wake-ups were missed', async () => {
    const { signal } = new AbortController()
    const frames = watchConversations(core, 'ws_quiet', signal)
    await frames.next()
    core.bus.emit('gap')
    expect((await frames.next()).value?.frame.case).toBe('ready')
    await frames.return(undefined)
  })
})
