import { backoffDelay } from './backoff.ts'
import { sessionEndOf, toWidgetError, type WidgetError } from './errors.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import type { AcceptedMessage, MessageState, PageContext, WidgetErrorDetail } from './types.ts'

const retryRange = { minMs: 1_000, maxMs: 30_000 }
const attemptsBeforeGivingUp = 8
/** A service that asks for a longer wait gets it: nothing is sent by itself, and the visitor is told. */
const longestWaitMs = 120_000

/** One logical send. Plain data, so that it can be kept. */
export interface OutboxEntry {
  clientOperationId: string
  body: string
  contentType: 'text'
  locale?: string
  pageContext?: PageContext
}

export interface OutboxDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  /** Makes one attempt. */
  send(entry: OutboxEntry): Promise<AcceptedMessage>
  onState(clientOperationId: string, state: MessageState, error?: WidgetErrorDetail): void
  onRetrying(clientOperationId: string, attempt: number): void
  onExhausted(clientOperationId: string, error: WidgetErrorDetail): void
  onAccepted(answer: AcceptedMessage): void
}

export type Outbox = ReturnType<typeof createOutbox>

/**
 * Sends messages one after another, in the order they were written. All attempts of one send carry the same
 * `clientOperationId`, so an answer that got lost never makes a second message. Only failures that the service calls
 * retryable are tried again; each wait is at least what the service asked for (POST /messages in section 4.1 of the
 * specification).
 */
export function createOutbox(deps: OutboxDeps) {
  const { clock, random, lifecycle } = deps.platform
  const pause = createPause(clock)
  let waiting: OutboxEntry[] = []
  const failed = new Map<string, OutboxEntry>()
  let running = false
  let open = false
  const unsubscribe = lifecycle.subscribe((signal) => {
    if (signal === 'online') pause.hurry()
  })

  return {
    /** Messages not yet accepted, those that failed included. */
    size: () => waiting.length + failed.size,

    add(entry: OutboxEntry) {
      waiting = [...waiting, entry]
      void run()
    },

    /** The visitor asks again for a send that failed: same operation, same key. False where there is none. */
    retry(clientOperationId: string): boolean {
      const entry = failed.get(clientOperationId)
      if (!entry || !open) return false
      failed.delete(clientOperationId)
      deps.onState(clientOperationId, 'pending')
      this.add(entry)
      return true
    },

    /** An event or the history shows that the service has it: there is nothing left to send. */
    settle(clientOperationId: string) {
      failed.delete(clientOperationId)
      if (waiting[0]?.clientOperationId === clientOperationId) pause.end()
      waiting = waiting.filter((entry) => entry.clientOperationId !== clientOperationId)
    },

    /** There is a session to send with. */
    start() {
      open = true
      void run()
    },

    /** Nothing is sent any more. Given the terminal failure, whatever was waiting is told as not sent. */
    stop(reason?: WidgetError) {
      open = false
      pause.end()
      if (!reason) return
      for (const entry of waiting) fail(entry, reason)
    },

    dispose() {
      open = false
      unsubscribe()
      pause.end()
    },
  }

  async function run() {
    if (running) return
    running = true
    while (open && waiting.length > 0) await deliver(waiting[0]!)
    running = false
  }

  async function deliver(entry: OutboxEntry) {
    for (let attempt = 1; isDue(entry); attempt += 1) {
      if (!lifecycle.isOnline()) await pause.wait(retryRange.maxMs)
      if (!isDue(entry)) return
      try {
        const answer = await deps.send(entry)
        waiting = waiting.filter((one) => one !== entry)
        failed.delete(entry.clientOperationId)
        return deps.onAccepted(answer)
      } catch (error) {
        const failure = toWidgetError(error)
        if (!isDue(entry)) return
        const waitMs = Math.max(backoffDelay(attempt - 1, retryRange, random), failure.retryAfterMs ?? 0)
        const givesUp = !failure.retryable || failure.terminal
        if (givesUp || attempt >= attemptsBeforeGivingUp || waitMs > longestWaitMs) return fail(entry, failure)
        deps.onState(entry.clientOperationId, 'retrying', failure.detail)
        deps.onRetrying(entry.clientOperationId, attempt)
        await pause.wait(waitMs, failure.retryAfterMs)
      }
    }
  }

  function isDue(entry: OutboxEntry) {
    return open && waiting[0] === entry
  }

  function fail(entry: OutboxEntry, failure: WidgetError) {
    waiting = waiting.filter((one) => one !== entry)
    failed.set(entry.clientOperationId, entry)
    const sessionOver = failure.terminal || sessionEndOf(failure.code) !== undefined
    const error = { code: failure.code, recoverable: !sessionOver && failure.detail.recoverable }
    deps.onState(entry.clientOperationId, 'failed', error)
    deps.onExhausted(entry.clientOperationId, error)
  }
}
