import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { createBus } from '../bus.ts'
import { watchConversations } from '../rpc/watch-conversations.ts'
import { bareCore } from '../test/core-with.ts'
import { send, testCores } from '../test/cores.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { inboxWatchOf } from './inbox-watch.ts'

const cores = testCores({ env: { INBOX_QUEUE_MAX: '5' }, started: false })

describe('a watched inbox', () => {
  it('sends `ready` and the visitors’ presence first, then changes, and ends when the caller aborts', async () => {
    const visitor = await cores.newVisitor()
    const abort = new AbortController()
    const frames = watchConversations(
      cores.core,
      { workspaceId: visitor.workspaceId, scopes: operatorScopes },
      abort.signal,
    )
    expect((await frames.next()).value?.frame.case).toBe('ready')
    expect((await frames.next()).value?.frame).toMatchObject({ case: 'presence', value: { complete: true } })
    await send(cores.core, visitor, 'hello')
    const { value } = await frames.next()
    expect(value?.frame).toMatchObject({
      case: 'changed',
      value: { conversation: { conversationId: visitor.conversationId, lastSequence: 1 }, events: [{ sequence: 1 }] },
    })
    abort.abort()
    expect(await frames.next()).toEqual({ done: true, value: undefined })
  })

  it('closes a slow reader with resource_exhausted and keeps other readers open', async () => {
    const visitor = await cores.newVisitor()
    const { signal } = new AbortController()
    const slow = watchConversations(cores.core, { scopes: operatorScopes }, signal)
    const quick = watchConversations(cores.core, { scopes: operatorScopes }, signal)
    await Promise.all([slow.next(), quick.next(), quick.next()])
    for (let index = 0; index < 8; index += 1) {
      await send(cores.core, visitor, `m${index}`)
      expect((await quick.next()).value?.frame.case).toBe('changed')
    }
    await expect(slow.next()).rejects.toMatchObject({ code: 'RateLimited', retryAfter: 1 })
    await quick.return(undefined)
  })

  it('repeats the changes of the last seconds for a new reader, and not for others', async () => {
    const visitor = await cores.newVisitor()
    const watched = (name: string, seen: string[]) =>
      inboxWatchOf(cores.core).add({
        workspaceId: visitor.workspaceId,
        ready: () => {},
        noted: () => {},
        grew: () => {},
        removed: () => {},
        changed: ({ events }) => seen.push(...events.map(({ message }) => `${name} ${message?.body}`)),
      })
    const [first, second]: [string[], string[]] = [[], []]
    const leaveFirst = watched('first', first)
    await send(cores.core, visitor, 'hello')
    await until('the change', () => first.length > 0)
    const leaveSecond = watched('second', second)
    await send(cores.core, visitor, 'again')
    await until('the next change', () => first.length > 1 && second.length > 1)
    expect(first).toEqual(['first hello', 'first again'])
    expect(second).toEqual(['second hello', 'second again'])
    leaveFirst()
    leaveSecond()
  })

  it('reports a message whose wake-up was lost, and one of another core with its wake-up', async () => {
    const visitor = await cores.newVisitor()
    const bus = createBus()
    const unhinted = inboxWatchOf(bareCore({ ...cores.core, bus }))
    let changes = 0
    const leave = unhinted.add({
      workspaceId: visitor.workspaceId,
      ready() {},
      noted() {},
      grew() {},
      removed() {},
      changed({ conversation }) {
        if (conversation.conversationId === visitor.conversationId) changes += 1
      },
    })
    await send(cores.core, visitor, 'hello')
    await until('the inbox entry', async () => {
      await unhinted.check()
      return changes > 0
    })
    await unhinted.check()
    expect(changes).toBe(1)
    await send(cores.core, visitor, 'more')
    bus.emit('advanced', visitor.conversationId, { sequence: 2, closed: false })
    await until('the message of another core', () => changes === 2)
    leave()
    await send(cores.core, visitor, 'again')
    await unhinted.check()
    expect(changes).toBe(2)
  })

  it('sends `ready` again after a gap in the wake-ups', async () => {
    const { signal } = new AbortController()
    const frames = watchConversations(cores.core, { workspaceId: 'ws_quiet', scopes: operatorScopes }, signal)
    await frames.next()
    await frames.next()
    cores.core.bus.emit('gap')
    expect((await frames.next()).value?.frame.case).toBe('ready')
    await frames.return(undefined)
  })
})
