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
  it('sends ready first, then changes, and ends when aborted', async () => {
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

  it('ends a slow reader with resource_exhausted and keeps the others', async () => {
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

  it('finds a message whose hint was lost', async () => {
    const visitor = await cores.newVisitor()
    const { events, conversations } = core.stores
    const unhinted = createInboxWatch({ events, conversations, bus: createBus(), logger: core.logger, now: cores.now })
    const changed: string[] = []
    const leave = unhinted.add({
      workspaceId: visitor.workspaceId,
      ready() {},
      changed: ({ conversation }) => void changed.push(conversation.conversationId),
    })
    await send(core, visitor, 'hello')
    await until('the inbox entry', async () => {
      await unhinted.check()
      return changed.includes(visitor.conversationId)
    })
    await unhinted.check()
    expect(changed.filter((id) => id === visitor.conversationId)).toHaveLength(1)
    leave()
    await send(core, visitor, 'again')
    await unhinted.check()
    expect(changed.filter((id) => id === visitor.conversationId)).toHaveLength(1)
  })

  it('sends ready again after a gap', async () => {
    const { signal } = new AbortController()
    const frames = watchConversations(core, 'ws_quiet', signal)
    await frames.next()
    core.bus.emit('gap')
    expect((await frames.next()).value?.frame.case).toBe('ready')
    await frames.return(undefined)
  })
})
