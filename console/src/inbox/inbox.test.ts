import { create } from '@bufbuild/protobuf'
import { signal } from '@preact/signals'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { WatchConversationsResponseSchema } from '#proto/messaging/v1/messaging_pb.js'
import { systemClock } from '../../../browser/platform.ts'
import { fakeConversations } from '../../test/fake-conversations.ts'
import type { InboxFilter } from '../router.ts'
import { createInbox } from './inbox.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Frame = Parameters<Parameters<typeof fakeConversations>[0]>[0]

/** An inbox over a fake service. `slow` delays the answers to lists, and makes them older. */
async function openInbox(filterAtStart: InboxFilter = {}) {
  const lists: string[] = []
  let push = (_: Frame) => {}
  let cut = () => {}
  const service = fakeConversations((frame) => push(frame))
  for (const id of ['cnv_a', 'cnv_b']) {
    service.add({ conversationId: id })
    service.past(id, 'visitor', `Hello from ${id}`, 100)
  }
  const slow = { ms: 0, lagMs: 0 }
  const messaging = {
    ...service.methods,
    async listConversations(request: never) {
      lists.push(JSON.stringify(request))
      const before = slow.lagMs > 0 ? structuredClone(await service.methods.listConversations(request)) : undefined
      await new Promise((resolve) => setTimeout(resolve, slow.ms))
      return before ?? service.methods.listConversations(request)
    },
    async *watchConversations() {
      const frames: Frame[] = [{ case: 'ready', value: {} }]
      let wake = () => {}
      let isCut = false
      push = (frame) => {
        frames.push(frame)
        wake()
      }
      cut = () => {
        isCut = true
        wake()
      }
      for (;;) {
        const frame = frames.shift()
        if (frame) yield create(WatchConversationsResponseSchema, { frame })
        else if (isCut) return
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
  const filter = signal<InboxFilter>({ queue: 'open', ...filterAtStart })
  const inbox = createInbox({
    api: { messaging } as never,
    me: 'Ada',
    filter,
    setFilter: (change) => {
      filter.value = { ...filter.value, ...change }
    },
    defaultQueue: signal(undefined),
    wasVisited: signal(false),
    platform: { clock: systemClock, lifecycle: { isOnline: () => true, subscribe: () => () => {} }, tabs: undefined },
    random: () => 1,
  })
  inbox.start()
  await vi.advanceTimersByTimeAsync(slow.ms + 10)
  const ids = () => inbox.shown.value.map(({ conversationId }) => conversationId).sort()
  const settle = (ms = 5_000) => vi.advanceTimersByTimeAsync(ms)
  return { inbox, service, filter, lists, slow, ids, settle, cut: () => cut() }
}

describe('the inbox shows what the service answers', () => {
  it('after a gap, without the conversations that a colleague closed in the meantime', async () => {
    const { inbox, service, ids, settle, cut } = await openInbox({ queue: 'unanswered' })
    expect(ids()).toEqual(['cnv_a', 'cnv_b'])
    cut()
    service.close('cnv_a')
    await settle()
    expect([ids(), inbox.counts.value?.unanswered]).toEqual([['cnv_b'], 1])
  })

  it('without an erased conversation, in every list and in what is known', async () => {
    const { inbox, service, filter, ids, settle } = await openInbox({ queue: 'unanswered' })
    filter.value = { queue: 'open' }
    await settle()
    service.erase('cnv_a')
    await vi.advanceTimersByTimeAsync(0)
    expect([ids(), inbox.conversations.value.has('cnv_a')]).toEqual([['cnv_b'], false])
    await settle()
    filter.value = { queue: 'unanswered' }
    expect(ids()).toEqual([])
    await settle()
    expect(ids()).toEqual(['cnv_b'])
  })

  it('with a change that arrives while a list is under way, also if the answer is older', async () => {
    const { inbox, service, slow, settle } = await openInbox()
    slow.ms = 300
    slow.lagMs = 1
    void inbox.reload()
    await vi.advanceTimersByTimeAsync(100)
    service.visitorSays('cnv_a', 'New text')
    await vi.advanceTimersByTimeAsync(250)
    expect(inbox.conversations.value.get('cnv_a')?.lastMessage?.body).toBe('New text')
    await settle()
    expect(inbox.conversations.value.get('cnv_a')?.lastMessage?.body).toBe('New text')
  })

  it('at the latest after the lag of another core, and with few calls for many changes', async () => {
    const { service, lists, ids, settle } = await openInbox()
    service.add({ conversationId: 'cnv_new' })
    const before = lists.length
    for (let index = 0; index < 100; index += 1) {
      service.visitorSays('cnv_new', `Line ${index}`)
      await vi.advanceTimersByTimeAsync(20)
    }
    await settle()
    expect(ids()).toContain('cnv_new')
    expect(lists.length - before).toBeLessThan(9)
  })

  it('and says that it loads until the answer of the chosen queue is there', async () => {
    const { inbox, filter, slow, ids } = await openInbox({ queue: 'closed' })
    slow.ms = 300
    filter.value = { queue: 'mine' }
    filter.value = { queue: 'unanswered' }
    for (let ms = 0; ms < 900 && ids().length === 0; ms += 50) {
      expect(inbox.isLoading.value).toBe(true)
      await vi.advanceTimersByTimeAsync(50)
    }
    expect([ids(), inbox.isLoading.value]).toEqual([['cnv_a', 'cnv_b'], false])
  })

  it('with all pages that the operator has asked for, also after a change', async () => {
    const { inbox, service, ids, settle } = await openInbox()
    for (let index = 0; index < 70; index += 1) {
      service.add({ conversationId: `cnv_${index}` })
      service.past(`cnv_${index}`, 'visitor', 'Hello', 200)
    }
    void inbox.reload()
    await settle()
    expect([ids().length, inbox.hasMore.value]).toEqual([50, true])
    void inbox.loadMore()
    await settle()
    service.visitorSays('cnv_a', 'Again')
    await settle()
    expect([ids().length, inbox.hasMore.value]).toEqual([72, false])
  })
})

it('a visitor types until a stop or a message; typing agents are ignored', async () => {
  const { inbox, service } = await openInbox()
  const types = async () => {
    await vi.advanceTimersByTimeAsync(0)
    return inbox.typing.value.has('cnv_a')
  }
  service.visitorTypes('cnv_a', true)
  expect(await types()).toBe(true)
  service.visitorTypes('cnv_a', false)
  expect(await types()).toBe(false)
  service.visitorTypes('cnv_a', true)
  service.visitorSays('cnv_a', 'Done')
  expect(await types()).toBe(false)
})
