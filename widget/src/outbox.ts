import { toWidgetError, WidgetError } from './errors.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import { retrying, retryRange } from './retrying.ts'
import type { DeliveryStatus, PageContext, WidgetErrorDetail } from './types.ts'
import type { AcceptedMessage } from './wire.ts'

const attemptsBeforeGivingUp = 8
/** If the service asks for a longer wait, the message fails, and only the visitor can retry it. */
const longestWaitMs = 120_000
/** Bound of the stored outbox. */
const charactersAtMost = 262_144

/** The request body, identical in each attempt. */
export interface MessageInput {
  clientOperationId: string
  body: string
  contentType: 'text'
  locale?: string
  pageContext?: PageContext
}

/** One logical send, in a form that can be stored. */
export interface OutboxEntry {
  input: MessageInput
  /** RFC 3339. */
  createdAt: string
  /** Time before which the service does not accept a retry. Milliseconds since the epoch. */
  notBeforeMs?: number
  /** Set when the message has failed. The visitor can retry it. */
  error?: WidgetErrorDetail
}

export interface OutboxDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  /** Makes one attempt. */
  send(input: MessageInput): Promise<AcceptedMessage>
  /** Stores the entries, so that they survive a reload. */
  save(entries: readonly OutboxEntry[]): void
  /** `attempt` is the next one; left out if there is none. */
  onStatus(clientOperationId: string, status: DeliveryStatus, error?: WidgetErrorDetail, attempt?: number): void
  onAccepted(answer: AcceptedMessage): void
}

export type Outbox = ReturnType<typeof createOutbox>

/**
 * Sends messages one after another, in the order in which they were written. All attempts of one send carry the same
 * `clientOperationId`, so a lost answer never creates a second message. Only failures that the service calls
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
     * Adds a message and stores it before it is sent.
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

    /** Restores the unsent entries of the page before. */
    restore(kept: OutboxEntry[]) {
      entries = [...kept, ...entries]
    },

    /** Retries a failed send with the same operation id. Returns false if there is none. */
    retry(clientOperationId: string): boolean {
      const entry = entries.find((one) => one.input.clientOperationId === clientOperationId && one.error)
      if (!entry || !open) return false
      const { input, createdAt } = entry
      keep([...entries.filter((one) => one !== entry), { input, createdAt }])
      deps.onStatus(clientOperationId, 'pending')
      void run()
      return true
    },

    /** An event or the history shows that the service has the message: removes its entry. */
    settle(clientOperationId: string) {
      if (next()?.input.clientOperationId === clientOperationId) pause.end()
      keep(entries.filter(({ input }) => input.clientOperationId !== clientOperationId))
    },

    /** Entries that are unsent or have failed. */
    pending: (): readonly OutboxEntry[] => entries,

    /** Removes failed entries. */
    dropFailed: () => keep(entries.filter(({ error }) => !error)),

    /** Starts sending: there is a session. */
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
