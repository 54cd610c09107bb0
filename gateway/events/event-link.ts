import type { MessageInitShape } from '@bufbuild/protobuf'
import { ConnectError } from '@connectrpc/connect'
import type { CommandSchema, Frame, WatchEventsRequest } from '#proto/messaging/v1/messaging_pb.js'
import type { CoreNode } from '../../core-client/core-pool.ts'
import { tlsFaultOf } from '../../core-client/system-codes.ts'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import { tokenFaultOf, watcherOf } from '../core-calls/core-clients.ts'
import type { Gateway } from '../gateway.ts'

type LinkCommand = NonNullable<MessageInitShape<typeof CommandSchema>['command']>

const COMMANDS_PER_MESSAGE = 1_000
const READY_DEADLINE_MS = 5_000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 1_000
const STABLE_MS = 1_000

export type EventLink = ReturnType<typeof createEventLink>

/** The only `WatchEvents` call of this gateway to one core. Reconnects with backoff. */
export function createEventLink(
  gateway: Gateway,
  core: CoreNode,
  on: { up: () => void; down: () => void; frame: (frame: Frame) => void },
) {
  const { clock, random } = gateway
  const logger = gateway.logger.child({ core: core.url })
  const watcher = watcherOf(gateway, core)
  /**
   * - `connecting`: the first attempt runs, at the start or after the connection was lost
   * - `up`: the core has sent `ready`
   * - `down`: the last attempt failed
   */
  let state: 'connecting' | 'up' | 'down' = 'connecting'
  let queue = createCommandQueue()
  let call = new AbortController()
  let failures = 0
  let stopped = false
  let cancelRetry = () => {}

  async function connect() {
    queue = createCommandQueue()
    call = new AbortController()
    let upSince: number | undefined
    let cause: ConnectError | undefined
    const cancelDeadline = clock.after(READY_DEADLINE_MS, () => call.abort())
    try {
      for await (const { frames } of watcher.watchEvents(queue as AsyncIterable<WatchEventsRequest>, {
        signal: call.signal,
      })) {
        for (const frame of frames) {
          if (frame.frame.case !== 'ready') receive(frame)
          else {
            cancelDeadline()
            upSince = clock.now()
            state = 'up'
            logger.info('event link is up')
            on.up()
          }
        }
      }
    } catch (error) {
      cause = ConnectError.from(error)
    }
    cancelDeadline()
    queue.close()
    call.abort()
    if (stopped) return
    onLost(upSince, cause)
  }

  function receive(frame: Frame) {
    if (state !== 'up') return
    try {
      on.frame(frame)
    } catch (error) {
      // One bad frame must not end the streams of all visitors.
      logger.error({ err: error, frame: frame.frame.case }, 'event frame failed; skipping it')
    }
  }

  function onLost(upSince: number | undefined, cause: ConnectError | undefined) {
    const wasUp = upSince !== undefined
    if (wasUp || failures === 0) {
      const reason = cause && (tokenFaultOf(gateway, cause.code) ?? tlsFaultOf(cause) ?? cause.rawMessage)
      logger.warn({ reason: reason ?? 'the core ended the call' }, 'event link is down; reconnecting')
    }
    if (wasUp && clock.now() - upSince >= STABLE_MS) failures = 0
    state = wasUp ? 'connecting' : 'down'
    failures++
    const pause = backoffMs(failures, { minMs: BACKOFF_MIN_MS, maxMs: BACKOFF_MAX_MS, random })
    cancelRetry = clock.after(pause, () => void connect())
    on.down()
  }

  return {
    state: () => state,
    /** Drops a command if the link is not up, because its subscription ended with the connection. */
    send: (command: LinkCommand) => queue.push(command),
    start: () => void connect(),
    stop() {
      stopped = true
      cancelRetry()
      queue.close()
      call.abort()
    },
  }
}

/** Commands that the `WatchEvents` call has not read yet. */
function createCommandQueue() {
  let commands: { command: LinkCommand }[] = []
  let closed = false
  let wake = () => {}

  return {
    push(command: LinkCommand) {
      if (closed) return
      commands.push({ command })
      wake()
    },
    close() {
      closed = true
      commands = []
      wake()
    },
    async *[Symbol.asyncIterator]() {
      while (!closed) {
        if (commands.length === 0) await new Promise<void>((resolve) => (wake = resolve))
        else yield { commands: commands.splice(0, COMMANDS_PER_MESSAGE) }
      }
    },
  }
}
