import { Code, ConnectError } from '@connectrpc/connect'
import type { WatchConversationsResponse } from '#proto/messaging/v1/messaging_pb.js'
import { backoffDelay, createPause } from '../../../browser/pause.ts'
import { systemClock } from '../../../browser/platform.ts'
import type { Api } from '../api.ts'

export type LinkState =
  | { name: 'connecting' }
  | { name: 'live' }
  /** `retryAt` is the time of the next connection attempt, in milliseconds since the epoch. */
  | { name: 'waiting'; retryAt: number }
  /** The service rejected the stream, so it is not retried. */
  | { name: 'rejected' }

export type InboxFrame = WatchConversationsResponse['frame']

export interface WatchOptions {
  messaging: Pick<Api['messaging'], 'watchConversations'>
  /** Takes a frame. A list that is requested after the frame `ready` misses no change. */
  onFrame(frame: InboxFrame): void
  onState(state: LinkState): void
  random: () => number
  /** Target that receives the browser's `online` event. The stream then reconnects at once. */
  browserEvents?: EventTarget
}

/** A stream that is silent for this time is closed. The service sends a heartbeat every 15 s. */
export const silenceMs = 40_000
const pauses = { minMs: 500, maxMs: 20_000 }

/** Watches the inbox, with backoff and jitter, until the returned function is called. */
export function watchInbox(options: WatchOptions): () => void {
  const { messaging, onFrame, onState, random, browserEvents } = options
  const pause = createPause(systemClock)
  let isStopped = false
  let failures = 0
  let attempt = new AbortController()

  async function follow() {
    attempt = new AbortController()
    const abort = () => attempt.abort()
    let silence = setTimeout(abort, silenceMs)
    try {
      for await (const { frame } of messaging.watchConversations({}, { signal: attempt.signal })) {
        clearTimeout(silence)
        silence = setTimeout(abort, silenceMs)
        if (frame.case === 'ready') {
          failures = 0
          onState({ name: 'live' })
        }
        onFrame(frame)
      }
    } finally {
      clearTimeout(silence)
    }
  }

  async function run() {
    while (!isStopped) {
      onState({ name: 'connecting' })
      const error = await follow().then(
        () => undefined,
        (reason) => ConnectError.from(reason),
      )
      if (isStopped) return
      if (error && final.has(error.code)) return onState({ name: 'rejected' })
      const pauseMs = backoffDelay(failures, pauses, random)
      failures += 1
      onState({ name: 'waiting', retryAt: Date.now() + pauseMs })
      await pause.wait(pauseMs)
    }
  }

  function retryNow() {
    failures = 0
    pause.end()
  }
  browserEvents?.addEventListener('online', retryNow)
  void run()
  return () => {
    browserEvents?.removeEventListener('online', retryNow)
    isStopped = true
    attempt.abort()
    pause.end()
  }
}

const final = new Set([Code.Unauthenticated, Code.PermissionDenied, Code.Unimplemented])
