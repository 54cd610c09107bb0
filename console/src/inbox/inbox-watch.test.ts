import { create } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type WatchConversationsResponse, WatchConversationsResponseSchema } from '#proto/messaging/v1/messaging_pb.js'
import { type LinkState, silenceMs, watchInbox } from './inbox-watch.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const ready = create(WatchConversationsResponseSchema, { frame: { case: 'ready', value: {} } })

/**
 * Watches an inbox. Each connection attempt runs the next script, which yields the frames of that
 * stream. After the last script, each stream yields only `ready`.
 */
function watching(scripts: (() => AsyncGenerator<WatchConversationsResponse>)[]) {
  const states: string[] = []
  const browserEvents = new EventTarget()
  let attempts = 0
  let readies = 0
  const watchConversations = (_: unknown, options?: { signal?: AbortSignal }) => {
    attempts += 1
    const script = scripts.shift()
    return script ? script() : silent(options?.signal)
  }
  const stop = watchInbox({
    messaging: { watchConversations } as never,
    onFrame: (frame) => {
      if (frame.case === 'ready') readies += 1
    },
    onState: ({ name }: LinkState) => states.push(name),
    random: () => 1,
    browserEvents,
  })
  return { states, browserEvents, stop, attempts: () => attempts, readies: () => readies }
}

async function* silent(signal: AbortSignal | undefined): AsyncGenerator<WatchConversationsResponse> {
  yield ready
  await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new ConnectError('', Code.Canceled))))
}
async function* failing(code: Code): AsyncGenerator<WatchConversationsResponse> {
  yield* []
  throw new ConnectError('', code)
}

describe('watchInbox', () => {
  it('watchInbox reconnects with exponential backoff, and at once when the browser is online again', async () => {
    const inbox = watching([
      () => failing(Code.Unavailable),
      () => failing(Code.Unavailable),
      () => failing(Code.Unavailable),
    ])
    await vi.advanceTimersByTimeAsync(999)
    expect(inbox.attempts()).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(inbox.attempts()).toBe(2)
    await vi.advanceTimersByTimeAsync(2000)
    expect(inbox.attempts()).toBe(3)
    inbox.browserEvents.dispatchEvent(new Event('online'))
    await vi.advanceTimersByTimeAsync(0)
    expect(inbox.attempts()).toBe(4)
    expect(inbox.readies()).toBe(1)
    inbox.stop()
  })

  it('watchInbox reconnects after 40 s without a frame', async () => {
    const inbox = watching([])
    await vi.advanceTimersByTimeAsync(silenceMs - 1)
    expect(inbox.states).toEqual(['connecting', 'live'])
    await vi.advanceTimersByTimeAsync(1 + 1000)
    expect(inbox.states).toEqual(['connecting', 'live', 'waiting', 'connecting', 'live'])
    inbox.stop()
  })

  it('watchInbox does not reconnect after the service rejected the stream or after it was stopped', async () => {
    const rejected = watching([() => failing(Code.PermissionDenied)])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(rejected.attempts()).toBe(1)
    expect(rejected.states.at(-1)).toBe('rejected')
    const stopped = watching([])
    await vi.advanceTimersByTimeAsync(10)
    stopped.stop()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(stopped.attempts()).toBe(1)
  })
})
