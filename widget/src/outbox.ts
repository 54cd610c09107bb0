import { toWidgetError, WidgetError } from './errors.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import { retrying, retryRange } from './retrying.ts'
import type { DeliveryStatus, PageContext, WidgetErrorDetail } from './types.ts'
import type { AcceptedMessage } from './wire.ts'

const attemptsBeforeGivingUp = 8
/** A service that asks for a longer wait gets it: nothing is sent by itself, and the visitor is told. */
const longestWaitMs = 120_000
/** Of everything that waits, as it is stored. */
const charactersAtMost = 262_144

/** What goes to the service, the same bytes in each attempt. */
export interface MessageInput {
  clientOperationId: string
  body: string
  contentType: 'text'
  locale?: string
  pageContext?: PageContext
}

/** One logical send. Plain data, so that it can be kept. */
export interface OutboxEntry {
  input: MessageInput
  /** RFC 3339. */
  createdAt: string
  /** The service asked not to be asked before. Milliseconds since the epoch. */
  notBeforeMs?: number
  /** Given up, until the visitor asks for another attempt. */
  error?: WidgetErrorDetail
}

export interface OutboxDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  /** Makes one attempt. */
  send(input: MessageInput): Promise<AcceptedMessage>
  /** Keeps what is still to be sent over a reload. */
  save(entries: readonly OutboxEntry[]): void
  /** `attempt` is the next one; left out if there is none. */
  onStatus(clientOperationId: string, status: DeliveryStatus, error?: WidgetErrorDetail, attempt?: number): void
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
  let entries: OutboxEntry[] = []
  let running = false
  let open = false
  let disposed = false
  const unsubscribe = lifecycle.subscribe((signal) => {
    if (signal === 'online') pause.hurry()
  })

  return {
    /**
     * Takes a message in, stored before it is sent.
     *
     * @throws WidgetError `outbox_full`
     */
    add(entry: OutboxEntry, countAtMost: number) {
      const next = [...entries, entry]
      if (next.length > countAtMost || JSON.stringify(next).length > charactersAtMost) {
        throw new WidgetError('outbox_full', { retryable: true })
      }
      keep(next)
      void run()
    },

    /** Takes up what the page before this one had not sent. */
    restore(kept: OutboxEntry[]) {
      entries = [...kept, ...entries]
    },

    /** The visitor asks again for a send that failed: same operation, same key. False where there is none. */
    retry(clientOperationId: string): boolean {
      const entry = entries.find((one) => one.input.clientOperationId === clientOperationId && one.error)
      if (!entry || !open) return false
      const { input, createdAt } = entry
      keep([...entries.filter((one) => one !== entry), { input, createdAt }])
      deps.onStatus(clientOperationId, 'pending')
      void run()
      return true
    },

    /** An event or the history shows that the service has it: there is nothing left to send. */
    settle(clientOperationId: string) {
      if (next()?.input.clientOperationId === clientOperationId) pause.end()
      keep(entries.filter(({ input }) => input.clientOperationId !== clientOperationId))
    },

    /** What is still to be sent, or failed. */
    pending: (): readonly OutboxEntry[] => entries,

    /** Forgets what failed. */
    dropFailed: () => keep(entries.filter(({ error }) => !error)),

    /** There is a session to send with. */
    start() {
      if (disposed) return
      open = true
      void run()
    },

    stop,

    /** Stops for good. Stored entries stay in the storage for the next page. */
    dispose(reason?: WidgetError) {
      stop(reason)
      disposed = true
      unsubscribe()
    },
  }

  /** Stops sending until `start`. Given a reason, the unsent messages are reported as failed. */
  function stop(reason?: WidgetError) {
    open = false
    pause.end()
    if (reason) for (const entry of entries.filter(({ error }) => !error)) fail(entry, reason)
  }

  function next() {
    return entries.find(({ error }) => !error)
  }

  function keep(now: OutboxEntry[]) {
    if (now.length + entries.length === 0) return
    entries = now
    if (!disposed) deps.save(entries)
  }

  async function run() {
    if (running) return
    running = true
    for (let entry = next(); open && entry; entry = next()) await deliver(entry)
    running = false
  }

  async function deliver(entry: OutboxEntry) {
    const { clientOperationId } = entry.input
    async function send() {
      const restMs = Math.min((entry.notBeforeMs ?? 0) - clock.now(), longestWaitMs)
      if (restMs > 0) await pause.wait(restMs, restMs)
      if (!lifecycle.isOnline()) await pause.wait(retryRange.maxMs)
      if (!isDue(entry)) throw new WidgetError('aborted')
      return deps.send(entry.input)
    }
    try {
      const answer = await retrying(send, {
        pause,
        random,
        isEnough: ({ retryAfterMs = 0 }, attempt) =>
          !isDue(entry) || attempt + 1 >= attemptsBeforeGivingUp || retryAfterMs > longestWaitMs,
        onRetry({ detail, retryAfterMs }, attempt) {
          if (retryAfterMs) {
            entry.notBeforeMs = clock.now() + retryAfterMs
            keep(entries)
          }
          deps.onStatus(clientOperationId, 'retrying', detail, attempt + 1)
        },
      })
      keep(entries.filter((one) => one !== entry))
      deps.onAccepted(answer)
    } catch (error) {
      if (isDue(entry)) fail(entry, toWidgetError(error))
    }
  }

  function isDue(entry: OutboxEntry) {
    return open && next() === entry
  }

  function fail(entry: OutboxEntry, { detail }: WidgetError) {
    entry.error = detail
    keep(entries)
    deps.onStatus(entry.input.clientOperationId, 'failed', detail)
  }
}
