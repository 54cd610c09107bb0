import { createPause, longestWaitMs } from '../../../browser/pause.ts'
import type { Platform } from '../../../browser/platform.ts'
import { useLineFeeds } from '../../../contract/line-ends.ts'
import { retrying, retryRange } from '../transport/retrying.ts'
import { toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { AcceptedMessage, MessageInput } from '../vocabulary/gen/wire.ts'
import type { DeliveryStatus, WidgetErrorDetail } from '../vocabulary/types.ts'

const attemptsBeforeGivingUp = 8
/** Maximum length of the stored outbox, in UTF-16 code units of its JSON. */
const charactersAtMost = 262_144

/** A message to send. It contains only data that can be stored as JSON. */
export interface OutboxEntry {
  input: MessageInput
  /** Time at which the visitor sent the message, in RFC 3339 format. */
  createdAt: string
  /** Earliest time of the next attempt, in milliseconds since the epoch. */
  notBeforeMs?: number
  /** Failure that ended the automatic attempts. Undefined if the message has not failed. */
  error?: WidgetErrorDetail
  failureVersion?: number
}

interface OutboxDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  ready(): Promise<unknown>
  send(input: MessageInput): Promise<AcceptedMessage>
  /** Called when the entries change. Stores the entries, so that they survive a reload. */
  save(entries: readonly OutboxEntry[]): void
  /** `attempt` is the number of the next attempt; undefined if none follows. */
  onStatus(entry: OutboxEntry, status: DeliveryStatus, error?: WidgetErrorDetail, attempt?: number): void
  onAccepted(answer: AcceptedMessage): void
}

/**
 * Sends messages one at a time, in order. All attempts of a message use one `clientOperationId`, so
 * the service detects duplicates. Retries only failures that the service marks as retryable, and
 * waits for the time that the service asks for (POST /messages in section 4.1 of the
 * specification).
 */
export function createOutbox(deps: OutboxDeps) {
  const { clock, random, lifecycle } = deps.platform
  const pause = createPause(clock)
  let entries: OutboxEntry[] = []
  let running = false
  let open = false
  let disposed = false
  let isHeld = false
  const unsubscribe = lifecycle.subscribe((signal) => {
    if (signal === 'online') pause.hurry()
  })

  return {
    /**
     * Stores a message, then sends it.
     *
     * @throws WidgetError `outbox_full`
     */
    add(entry: OutboxEntry, countAtMost: number) {
      const next = [...entries, entry]
      if (next.length > countAtMost || JSON.stringify(next).length > charactersAtMost) {
        throw new WidgetError('outbox_full', { retryable: true })
      }
      keep(next)
      resendRefused()
    },

    resendRefused,

    /** Adds unsent messages that the previous page stored. */
    restore(stored: OutboxEntry[]) {
      entries = [...stored, ...entries]
    },

    /**
     * Retries a failed message with the same operation id. Returns false if no failed message has
     * this id.
     *
     * @throws WidgetError `failure_outdated` if the message has failed again since `failureVersion`
     */
    retry(clientOperationId: string, failureVersion?: number): boolean {
      const entry = entries.find((one) => one.input.clientOperationId === clientOperationId && one.error)
      if (!entry || !open) return false
      const { input, createdAt, failureVersion: current } = entry
      if (failureVersion !== undefined && failureVersion !== current) throw new WidgetError('failure_outdated')
      const again = { input, createdAt, failureVersion: current }
      keep([...entries.filter((one) => one !== entry), again])
      deps.onStatus(again, 'pending')
      void run()
      return true
    },

    /** Called when the stream or the history shows that the service has accepted the message. */
    confirm(clientOperationId: string) {
      if (next()?.input.clientOperationId === clientOperationId) pause.end()
      keep(entries.filter(({ input }) => input.clientOperationId !== clientOperationId))
    },

    /** Returns the messages that the service has not accepted, including failed ones. */
    pending: (): readonly OutboxEntry[] => entries,
    dropFailed: () => keep(entries.filter(({ error }) => !error)),

    /** Starts sending messages. Call when the session exists. */
    start() {
      if (disposed) return
      open = true
      void run()
    },

    stop,

    /** Waiting messages fail with the reason. What the visitor sends afterwards gets one attempt. */
    hold(reason: WidgetError) {
      isHeld = true
      stop(reason)
      open = true
    },

    /** Stops for good. The stored messages remain for the next page. A reason reports the unsent as failed. */
    dispose(reason?: WidgetError) {
      stop(reason)
      disposed = true
      unsubscribe()
    },
  }

  /** Stops until `start` is called. A reason reports the unsent messages as failed. */
  function stop(reason?: WidgetError) {
    open = false
    pause.end()
    if (reason) for (const entry of entries.filter(({ error }) => !error)) fail(entry, reason)
  }

  /** Sends again, in their places, the messages that failed because the visitor had denied consent. */
  function resendRefused() {
    for (const entry of entries.filter(({ error }) => error?.code === 'ConsentRequired')) {
      entry.error = undefined
      deps.onStatus(entry, 'pending')
    }
    if (open) void run()
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
    async function send() {
      const restMs = Math.min((entry.notBeforeMs ?? 0) - clock.now(), longestWaitMs)
      if (restMs > 0) await pause.wait(restMs, restMs)
      if (!lifecycle.isOnline()) await pause.wait(retryRange.maxMs)
      await deps.ready()
      if (!isDue(entry)) throw new WidgetError('aborted')
      return deps.send(entry.input)
    }
    try {
      const answer = await retrying(send, {
        pause,
        random,
        // If the service asks for a longer wait, the message fails, and the visitor can retry it.
        isEnough: ({ retryAfterMs = 0 }, attempt) =>
          isHeld || !isDue(entry) || attempt + 1 >= attemptsBeforeGivingUp || retryAfterMs > longestWaitMs,
        onRetry({ detail, retryAfterMs }, attempt) {
          if (retryAfterMs) {
            entry.notBeforeMs = clock.now() + retryAfterMs
            keep(entries)
          }
          deps.onStatus(entry, 'retrying', detail, attempt + 1)
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
    entry.failureVersion = (entry.failureVersion ?? 0) + 1
    keep(entries)
    deps.onStatus(entry, 'failed', detail)
  }
}

/**
 * Normalizes a text for the service: line ends become LF, other control characters are removed, and
 * lone surrogates are replaced.
 *
 * @param maxLength maximum number of code points
 * @throws WidgetError `message_empty` or `message_too_long`
 */
export function messageBody(text: string, maxLength = 4_000): string {
  const body = useLineFeeds(text)
    .replace(/[^\P{Cc}\t\n]/gu, '')
    .toWellFormed()
  if (body.trim() === '') throw new WidgetError('message_empty')
  if ([...body].length > maxLength) throw new WidgetError('message_too_long')
  return body
}
