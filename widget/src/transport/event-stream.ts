import { backoffDelay, createPause } from '../../../browser/pause.ts'
import type { LifecycleSignal, Platform, TimerId } from '../../../browser/platform.ts'
import { terminalEvents, toWidgetError } from '../vocabulary/errors.ts'
import type {
  ErrorCode,
  ReplayReset,
  SessionEnd,
  StreamEvent,
  StreamPosition,
  WidgetConfig,
} from '../vocabulary/types.ts'
import { readEvents } from './event-reader.ts'

/** A connection that was open for so long is stable: backoff and resets start again at 0. */
const stableAfterMs = 10_000
/** A stable connection resets the count. */
const resetsBeforeGivingUp = 3

interface EventStreamDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'lifecycle'>
  settings?: Partial<WidgetConfig['realtime']>
  position: StreamPosition
  ready(): Promise<unknown>
  /** Makes one attempt to open the stream at the given position. */
  connect(position: StreamPosition, signal: AbortSignal): Promise<Response>
  /** Called with each new event, in order, and with each event that is not in the log. */
  onEvent(event: StreamEvent): void
  onPosition(position: StreamPosition): void
  /**
   * Called if a heartbeat's sequence number is higher than that of the last delivered event, or if
   * an event is invalid. Loads the messages after the position. Resolves to true if at least one of
   * these messages was not loaded before. Never rejects.
   */
  onBehind(position: StreamPosition): Promise<boolean>
  /** The service cannot replay from the position. Loads the history; resolves to where to continue. */
  onReset(): Promise<number>
  /** Called with each reset after which the stream continues. */
  onResetRequired(about: ReplayReset): void
  onState(state: 'online' | 'reconnecting'): void
  /** `failed`: the service refused the stream, or too many resets followed each other. */
  onEnd(code: ErrorCode, failed: boolean, about?: ReplayReset): void
}

const resetOf = ({ data }: StreamEvent): ReplayReset => ({
  reason: String(data.reason),
  reauthenticationRequired: data.reauthenticationRequired === true,
})

/** The epoch in the id lets the service find that its data was restored from a backup. */
export function positionIn(epoch: string | undefined, sequence: number): StreamPosition {
  return epoch ? { lastEventId: `${epoch}-${sequence}`, sequence } : { sequence }
}

/**
 * Keeps one event stream open (section 4 of the contract, section 6.1 of the specification).
 * Reconnects with `Last-Event-ID` and `afterSequence`, and drops duplicates. Reconnects if
 * heartbeats stop. If a heartbeat's sequence number is higher than that of the last event, loads
 * the missing messages.
 */
export function createEventStream(deps: EventStreamDeps) {
  const { clock, random, lifecycle } = deps.platform
  const { heartbeatSeconds = 15, reconnectMinMs = 500, reconnectMaxMs = 20_000 } = deps.settings ?? {}
  const heartbeatMs = heartbeatSeconds * 1_000
  const silenceLimitMs = heartbeatMs * 2.5
  const pause = createPause(clock)
  let position = deps.position
  /** Messages up to this sequence were received, or requested because they are missing. */
  let comparedTo = position.sequence
  /** Position before the first gap. What is missing was lost, or not meant for this visitor. */
  let beforeHole: StreamPosition | undefined
  /** The current run of the loop. Each `start` sets a new object, so that earlier runs stop. */
  let current: object | undefined
  let attempt = 0
  let resets = 0
  let retryHintMs = 0
  let lastActivityMs = 0
  /** Time at which the latest connection was opened. Undefined before its answer. */
  let openedMs: number | undefined
  let connection: AbortController | undefined
  let watchdog: TimerId
  let unsubscribe = () => {}

  return {
    /** Opens the stream. A `start` after `stop` resumes from the last position. */
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
      await deps.ready()
      if (current !== mine) return
      openedMs = undefined
      const failure = await connectOnce()
      if (current !== mine) return
      if (failure && !failure.retryable) return end(failure.code, true)
      if (openedMs !== undefined && clock.now() - openedMs >= stableAfterMs) attempt = resets = 0
      deps.onState('reconnecting')
      const backoffMs = backoffDelay(attempt, { minMs: reconnectMinMs, maxMs: reconnectMaxMs }, random)
      const hintMs = Math.min(retryHintMs, reconnectMaxMs)
      await pause.wait(Math.max(hintMs, backoffMs), failure?.retryAfterMs)
      attempt += 1
    }
  }

  /** Opens one connection and reads it until it ends. Returns the service's error, or undefined. */
  async function connectOnce() {
    const controller = new AbortController()
    connection = controller
    lastActivityMs = clock.now()
    watch(controller)
    let reset: StreamEvent | undefined
    try {
      const response = await deps.connect(position, controller.signal)
      if (controller.signal.aborted) return undefined
      openedMs = clock.now()
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
          // The invalid event may have contained a message.
          if (!event) void deps.onBehind(position)
          else if (event.type === 'replay.reset.required') {
            const about = resetOf(event)
            if (about.reauthenticationRequired) return end('replay.reset.required', false, about)
            deps.onResetRequired(about)
            reset = event
            controller.abort()
          } else if (terminalEvents.includes(event.type)) {
            end(event.type as SessionEnd)
          } else if (!event.id) {
            deps.onEvent(event)
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
    if (reset && current) return await startOver(current, reset.id)
    return undefined
  }

  function advance(event: StreamEvent) {
    if (event.sequence > position.sequence + 1) beforeHole ??= position
    position = { lastEventId: event.id, sequence: event.sequence }
    // The service works, so the next connection need not wait long.
    attempt = 0
    deps.onEvent(event)
    deps.onPosition(position)
  }

  async function startOver(mine: object, resetId?: string) {
    resets += 1
    if (resets > resetsBeforeGivingUp) {
      end('realtime_terminal_failure', true)
      return undefined
    }
    try {
      const sequence = await deps.onReset()
      if (current !== mine) return undefined
      position = positionIn(resetId?.split('-')[0], sequence)
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
    // Events other than messages may be lost, too. A new connection replays them.
    if (missed) controller.abort()
  }

  function watch(controller: AbortController) {
    clock.clearTimeout(watchdog)
    const silentMs = clock.now() - lastActivityMs
    if (silentMs >= silenceLimitMs) return controller.abort()
    watchdog = clock.setTimeout(() => watch(controller), silenceLimitMs - silentMs)
  }

  function onLifecycle(signal: LifecycleSignal) {
    // Close the stream, so that the chat does not appear online while the browser is offline.
    if (signal === 'offline') return connection?.abort()
    if (pause.isWaiting()) {
      attempt = 0
      pause.hurry()
    } else if (signal === 'online' || clock.now() - lastActivityMs > heartbeatMs * 1.5) {
      connection?.abort()
      attempt = 0
    }
  }

  function end(code: ErrorCode, failed = false, about?: ReplayReset) {
    stop()
    deps.onEnd(code, failed, about)
  }

  function stop() {
    current = undefined
    unsubscribe()
    clock.clearTimeout(watchdog)
    connection?.abort()
    pause.end()
  }
}
