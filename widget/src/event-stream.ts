import { backoffDelay } from './backoff.ts'
import { terminalEvents, toWidgetError, type WidgetError } from './errors.ts'
import { readEvents } from './event-reader.ts'
import { createPause } from './pause.ts'
import type { LifecycleSignal, Platform, TimerId } from './platform.ts'
import type { StreamPosition } from './session-record.ts'
import type { StreamEvent, WidgetConfig } from './types.ts'

/** A connection that lasted this long starts the backoff anew. */
const stableAfterMs = 10_000
/** Resets in a row, without a stable connection between them, before the stream gives up. */
const resetsBeforeGivingUp = 3

export interface EventStreamDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  settings?: Partial<WidgetConfig['realtime']>
  /** Where to begin. */
  position: StreamPosition
  /** Makes one attempt; called with the position of that moment. */
  connect(position: StreamPosition, signal: AbortSignal): Promise<Response>
  /** An event not seen before, in order. */
  onEvent(event: StreamEvent): void
  onPosition(position: StreamPosition): void
  /**
   * The service has later events than the stream delivered. Fetches missing messages from the history. Resolves to true if
   * there were any; never rejects.
   */
  onBehind(position: StreamPosition): Promise<boolean>
  /** The position is no longer valid. Loads the history and resolves to the sequence to continue from. */
  onReset(): Promise<number>
  onState(state: 'online' | 'reconnecting'): void
  /**
   * The stream has stopped for good. `failed` is false after a terminal event, and true if the service refused the stream or
   * resets did not help.
   */
  onEnd(code: string, failed: boolean): void
}

export type EventStream = ReturnType<typeof createEventStream>

/**
 * Keeps one event stream open (sections 4 and 6.1 of the contract and the specification): resumes with `Last-Event-ID` and
 * `afterSequence`, drops what it has already seen, and notices a connection that only looks alive by the heartbeats that fail
 * to come or that tell of more than has arrived.
 */
export function createEventStream(deps: EventStreamDeps) {
  const { clock, random, lifecycle } = deps.platform
  const { heartbeatSeconds = 15, reconnectMinMs = 500, reconnectMaxMs = 20_000 } = deps.settings ?? {}
  const heartbeatMs = heartbeatSeconds * 1_000
  const silenceLimitMs = heartbeatMs * 2.5
  const pause = createPause(clock)
  let position = deps.position
  /** How far the history has been compared with the stream. */
  let comparedTo = position.sequence
  /** The position before a hole in the sequences, which may be nobody's event or a lost one. */
  let beforeHole: StreamPosition | undefined
  /** The run that is under way. A stream that was stopped and started again has another one. */
  let current: object | undefined
  let attempt = 0
  let resets = 0
  let retryHintMs = 0
  let lastActivityMs = 0
  let connection: AbortController | undefined
  let watchdog: TimerId
  let unsubscribe = () => {}

  return {
    /** Opens the stream, or opens it again where it was stopped. */
    start() {
      current = {}
      attempt = resets = 0
      unsubscribe = lifecycle.subscribe(onLifecycle)
      void run(current)
    },
    stop,
  }

  async function run(mine: object) {
    while (current === mine) {
      const startedMs = clock.now()
      const failure = await connectOnce()
      if (current !== mine) return
      if (failure && !failure.retryable) return end(failure.code, true)
      if (clock.now() - startedMs >= stableAfterMs) attempt = resets = 0
      deps.onState('reconnecting')
      const backoffMs = backoffDelay(attempt, { minMs: reconnectMinMs, maxMs: reconnectMaxMs }, random)
      const hintMs = Math.min(retryHintMs, reconnectMaxMs)
      await pause.wait(Math.max(hintMs, backoffMs), failure?.retryAfterMs)
      attempt += 1
    }
  }

  /** One connection from its opening to its end. Answers what it failed of, if it was not a plain close. */
  async function connectOnce(): Promise<WidgetError | undefined> {
    const controller = new AbortController()
    connection = controller
    lastActivityMs = clock.now()
    watch(controller)
    let reset = false
    try {
      const response = await deps.connect(position, controller.signal)
      if (controller.signal.aborted) return undefined
      deps.onState('online')
      await readEvents(response.body!, {
        onActivity: () => {
          lastActivityMs = clock.now()
        },
        onRetry: (ms) => {
          retryHintMs = ms
        },
        onHeartbeat: (last) => void compare(last, controller),
        onEvent(event) {
          if (controller.signal.aborted) return
          // If the unreadable event was a message, the history has it.
          if (!event) void deps.onBehind(position)
          else if (event.type === 'replay.reset.required') {
            if (event.data.reauthenticationRequired === true) return end('replay.reset.required')
            reset = true
            controller.abort()
          } else if (terminalEvents.includes(event.type)) {
            end(event.type)
          } else if (event.sequence > position.sequence) {
            advance(event)
          }
        },
      })
    } catch (error) {
      const failure = toWidgetError(error)
      if (!controller.signal.aborted && failure.status) return failure
    } finally {
      if (connection === controller) {
        clock.clearTimeout(watchdog)
        connection = undefined
      }
    }
    if (reset && current) return await startOver(current)
    return undefined
  }

  function advance(event: StreamEvent) {
    if (event.sequence > position.sequence + 1) beforeHole ??= position
    position = { lastEventId: event.id, sequence: event.sequence }
    deps.onEvent(event)
    deps.onPosition(position)
  }

  /** Continues after a reset with the newest page of the history. */
  async function startOver(mine: object): Promise<WidgetError | undefined> {
    resets += 1
    if (resets > resetsBeforeGivingUp) {
      end('realtime_terminal_failure', true)
      return undefined
    }
    try {
      const sequence = await deps.onReset()
      if (current !== mine) return undefined
      position = { sequence }
      comparedTo = sequence
      beforeHole = undefined
      deps.onPosition(position)
    } catch (error) {
      return toWidgetError(error)
    }
    return undefined
  }

  async function compare(lastSequence: number, controller: AbortController) {
    const from = beforeHole ?? position
    if (!beforeHole && lastSequence <= Math.max(position.sequence, comparedTo)) return
    beforeHole = undefined
    comparedTo = lastSequence
    const missed = await deps.onBehind(from)
    // A stream that lost a message may have lost other events too; a new connection brings those that are still ahead.
    if (missed) controller.abort()
  }

  function watch(controller: AbortController) {
    clock.clearTimeout(watchdog)
    const silentMs = clock.now() - lastActivityMs
    if (silentMs >= silenceLimitMs) return controller.abort()
    watchdog = clock.setTimeout(() => watch(controller), silenceLimitMs - silentMs)
  }

  function onLifecycle(signal: LifecycleSignal) {
    // The browser is sure that there is no network, so nobody is told that the chat is online.
    if (signal === 'offline') return connection?.abort()
    if (pause.isWaiting()) {
      attempt = 0
      pause.hurry()
    } else if (signal === 'online' || clock.now() - lastActivityMs > heartbeatMs * 1.5) {
      connection?.abort()
      attempt = 0
    }
  }

  function end(code: string, failed = false) {
    stop()
    deps.onEnd(code, failed)
  }

  function stop() {
    current = undefined
    unsubscribe()
    clock.clearTimeout(watchdog)
    connection?.abort()
    pause.end()
  }
}
