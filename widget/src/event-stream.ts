import { backoffDelay } from './backoff.ts'
import { terminalEvents, toWidgetError, type WidgetError } from './errors.ts'
import { readEvents } from './event-reader.ts'
import { createPause } from './pause.ts'
import type { LifecycleSignal, Platform, TimerId } from './platform.ts'
import type { StreamPosition } from './session-record.ts'
import type { StreamEvent, WidgetConfig } from './types.ts'

/** A connection that lasted this long resets the backoff. */
const stableAfterMs = 10_000
/** Resets in a row, without a stable connection between them, before the stream gives up. */
const resetsBeforeGivingUp = 3

export interface EventStreamDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  settings?: Partial<WidgetConfig['realtime']>
  /** Position to resume from. */
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
 * `afterSequence`, drops duplicate events, and detects a dead connection by missing heartbeats and a lost event by a
 * heartbeat whose sequence is ahead of the stream.
 */
export function createEventStream(deps: EventStreamDeps) {
  const { clock, random, lifecycle } = deps.platform
  const { heartbeatSeconds = 15, reconnectMinMs = 500, reconnectMaxMs = 20_000 } = deps.settings ?? {}
  const heartbeatMs = heartbeatSeconds * 1_000
  const silenceLimitMs = heartbeatMs * 2.5
  const pause = createPause(clock)
  let position = deps.position
  /** Sequence up to which history and stream were compared. */
  let comparedTo = position.sequence
  /** Position before a gap in the sequences: an event was lost, or was not for this visitor. */
  let beforeHole: StreamPosition | undefined
  /** Identifies the current run. Each `start` makes a new one. */
  let current: object | undefined
  let attempt = 0
  let resets = 0
  let retryHintMs = 0
  let lastActivityMs = 0
  let connection: AbortController | undefined
  let watchdog: TimerId
  let unsubscribe = () => {}

  return {
    /** Opens the stream. After `stop`, it resumes from the last position. */
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

  /** Makes one connection and reads it until it ends. Returns the service's error if there was one. */
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
    // Other events may be lost too. A new connection delivers the events after the position.
    if (missed) controller.abort()
  }

  function watch(controller: AbortController) {
    clock.clearTimeout(watchdog)
    const silentMs = clock.now() - lastActivityMs
    if (silentMs >= silenceLimitMs) return controller.abort()
    watchdog = clock.setTimeout(() => watch(controller), silenceLimitMs - silentMs)
  }

  function onLifecycle(signal: LifecycleSignal) {
    // Without a network, the chat must not be reported as online.
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
