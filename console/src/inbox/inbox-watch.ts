import { Code, ConnectError } from '@connectrpc/connect'
import type { ConversationChanged } from '#proto/messaging/v1/messaging_pb.js'
import type { Api } from '../api.ts'

export type LinkState =
  | { name: 'connecting' }
  | { name: 'live' }
  /** `retryAt` in milliseconds of the epoch. */
  | { name: 'waiting'; retryAt: number }
  /** It does not come again by itself. */
  | { name: 'refused' }

export interface WatchOptions {
  messaging: Pick<Api['messaging'], 'watchConversations'>
  /** From here on every change is told: list after it. */
  onReady(): void
  onChanged(change: ConversationChanged): void
  onState(state: LinkState): void
  now: () => number
  random: () => number
  /** Told when it is worth trying at once, for example when the browser is online again. */
  nudges?: EventTarget
}

/** A stream that brings nothing for so long is dead; its heartbeat comes every 15 s. */
export const silenceMs = 40_000
const firstPauseMs = 500
const longestPauseMs = 20_000

/** Follows the inbox, and comes back when the stream is lost, with pauses that grow and differ. Answers how to stop. */
export function watchInbox({ messaging, onReady, onChanged, onState, now, random, nudges }: WatchOptions): () => void {
  const stopped = new AbortController()
  let failures = 0
  let wake = () => {}
  let attempt = new AbortController()

  async function follow() {
    attempt = new AbortController()
    const abort = () => attempt.abort()
    stopped.signal.addEventListener('abort', abort)
    let silence = setTimeout(abort, silenceMs)
    try {
      for await (const { frame } of messaging.watchConversations({}, { signal: attempt.signal })) {
        clearTimeout(silence)
        silence = setTimeout(abort, silenceMs)
        if (frame.case === 'ready') {
          failures = 0
          onState({ name: 'live' })
          onReady()
        } else if (frame.case === 'changed') onChanged(frame.value)
      }
    } finally {
      clearTimeout(silence)
      stopped.signal.removeEventListener('abort', abort)
    }
  }

  async function run() {
    while (!stopped.signal.aborted) {
      onState({ name: 'connecting' })
      const error = await follow().then(
        () => undefined,
        (reason) => ConnectError.from(reason),
      )
      if (stopped.signal.aborted) return
      if (error && final.has(error.code)) return onState({ name: 'refused' })
      const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** failures) * (0.5 + random() / 2)
      failures += 1
      onState({ name: 'waiting', retryAt: now() + pause })
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pause)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
        stopped.signal.addEventListener('abort', wake, { once: true })
      })
    }
  }

  function nudge() {
    failures = 0
    wake()
  }
  nudges?.addEventListener('online', nudge)
  void run()
  return () => {
    nudges?.removeEventListener('online', nudge)
    stopped.abort()
    attempt.abort()
  }
}

const final = new Set([Code.Unauthenticated, Code.PermissionDenied, Code.Unimplemented])
