import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { createDrafts, createOutbox } from './outbox.ts'

function memory() {
  const items = new Map<string, string>()
  return {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  }
}

/**
 * Creates an outbox. Each call to its service fails with the next of `codes`. Later calls succeed.
 * Timers end at once.
 */
function outboxWith(codes: Code[], storage = memory(), avatarUrl?: string) {
  const calls: { clientOperationId: string; body: string; agent: object }[] = []
  const closed: string[] = []
  const drafts = createDrafts(storage, 'ws_1 ada')
  const outbox = createOutbox({
    messaging: {
      async sendAgentMessage(input: object) {
        calls.push(input as (typeof calls)[number])
        const code = codes.shift()
        if (code !== undefined) throw new ConnectError('failed', code)
        return { message: undefined } as never
      },
      async closeConversation({ conversationId }: { conversationId?: string }) {
        const code = codes.shift()
        if (code !== undefined) throw new ConnectError('failed', code)
        closed.push(conversationId!)
        return {} as never
      },
    },
    drafts,
    agent: () => ({ displayName: 'Ada', avatarUrl }),
    clock: { setTimeout: (callback) => void queueMicrotask(callback), clearTimeout() {}, now: () => 0 },
    random: () => 0,
  })
  return { outbox, calls, closed, drafts, storage }
}

/**
 * Resolves when the outbox has nothing left to do. One turn of the event loop is enough, because
 * the fakes never wait for a timer.
 */
const idle = () => new Promise((resolve) => setImmediate(resolve))

describe('the outbox of the console', () => {
  it('retries a reply with the same operation id until the service accepts it, and keeps the order of replies', async () => {
    const { outbox, calls } = outboxWith([Code.Unavailable, Code.DeadlineExceeded, Code.ResourceExhausted])
    const replies = outbox.open('cnv_1', () => {})
    for (const body of ['one', 'two']) replies.send(body)
    await idle()
    expect(calls.map(({ body }) => body)).toEqual(['one', 'one', 'one', 'one', 'two'])
    expect(new Set(calls.map(({ clientOperationId }) => clientOperationId)).size).toBe(2)
    expect(outbox.markOf('cnv_1')).toBeUndefined()
  })

  it('sends a reply once if the storage of the tab is full', async () => {
    const full = {
      ...memory(),
      setItem() {
        throw new DOMException('full', 'QuotaExceededError')
      },
    }
    const { outbox, calls } = outboxWith([], full)
    outbox.open('cnv_1', () => {}).send('one')
    await idle()
    expect(calls.map(({ body }) => body)).toEqual(['one'])
    expect(outbox.markOf('cnv_1')).toBeUndefined()
  })

  it('sends the stored replies of all conversations after a reload, with their operation ids', async () => {
    const first = outboxWith([Code.Unavailable, Code.Unavailable])
    for (const id of ['cnv_1', 'cnv_2']) first.outbox.open(id, () => {}).send(id)
    first.outbox.stop()
    await idle()
    const second = outboxWith([], first.storage)
    expect(second.outbox.markOf('cnv_1')).toBe('unsent')
    second.outbox.sendNow()
    await idle()
    const ids = (calls: typeof first.calls) => calls.map(({ clientOperationId }) => clientOperationId).sort()
    expect(ids(second.calls)).toEqual(ids(first.calls))
    expect(second.drafts.count()).toBe(0)
  })

  it('sends a reply again with the picture of the first try, even if the operator has changed it and reloaded the page', async () => {
    const first = outboxWith([Code.Unavailable], memory(), 'https://chat.example/one')
    first.outbox.open('cnv_1', () => {}).send('Hello')
    first.outbox.stop()
    await idle()
    const second = outboxWith([], first.storage, 'https://chat.example/two')
    second.outbox.sendNow()
    await idle()
    expect(second.calls.map(({ agent }) => agent)).toEqual(first.calls.map(({ agent }) => agent))
    expect(second.calls[0]?.agent).toEqual({ displayName: 'Ada', avatarUrl: 'https://chat.example/one' })
  })

  it('does not retry a rejected reply automatically, and sends the next reply', async () => {
    const { outbox, calls } = outboxWith([Code.PermissionDenied])
    const replies = outbox.open('cnv_1', () => {})
    for (const body of ['one', 'two']) replies.send(body)
    await idle()
    expect(calls.map(({ body }) => body)).toEqual(['one', 'two'])
    expect(replies.list.value).toMatchObject([{ body: 'one', state: 'failed' }])
    replies.retry(replies.list.value[0]!.operationId)
    await idle()
    expect(calls[2]!.clientOperationId).toBe(calls[0]!.clientOperationId)
    expect(replies.list.value).toEqual([])
  })

  it('closes a conversation after its reply, also if its view is closed, the page is reloaded or a call fails', async () => {
    const first = outboxWith([Code.Unavailable])
    const replies = first.outbox.open('cnv_1', () => {})
    replies.send('Goodbye', { closes: true })
    replies.close()
    first.outbox.stop()
    await idle()
    const ok = undefined as never
    const second = outboxWith([ok, Code.Unavailable], first.storage)
    second.outbox.sendNow()
    await idle()
    expect(second.closed).toEqual(['cnv_1'])
    expect(new Set(second.calls.map(({ clientOperationId }) => clientOperationId)).size).toBe(1)
    expect(second.drafts.count()).toBe(0)
  })

  it('says that a conversation was not closed, and keeps the wish when the stream shows the reply first', async () => {
    const { outbox, calls, closed } = outboxWith([undefined as never, Code.PermissionDenied])
    const replies = outbox.open('cnv_1', () => {})
    replies.send('Goodbye', { closes: true })
    await Promise.resolve()
    replies.confirm(calls[0]!.clientOperationId)
    await idle()
    expect(replies.list.value).toMatchObject([{ body: 'Goodbye', state: 'failed', isSent: true }])
    replies.retry(calls[0]!.clientOperationId)
    await idle()
    expect(closed).toEqual(['cnv_1'])
    expect(replies.list.value).toEqual([])
  })

  it('stores nothing after it was stopped, so that a sign-out removes the replies', async () => {
    const { outbox, drafts, storage } = outboxWith([Code.Unavailable])
    outbox.open('cnv_1', () => {}).send('one')
    outbox.stop()
    drafts.clear()
    await idle()
    expect(storage.getItem('service.console.drafts')).toBeNull()
  })
})
