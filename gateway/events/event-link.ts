import type { MessageInitShape } from '@bufbuild/protobuf'
import { type Client, type Code, ConnectError } from '@connectrpc/connect'
import type { FastifyBaseLogger } from 'fastify'
import type { CommandSchema, Frame, MessagingService, WatchEventsRequest } from '#proto/messaging/v1/messaging_pb.js'
import { backoffMs } from '../../platform/concurrency/backoff.ts'
import type { Clock } from '../clock.ts'

type LinkCommand = NonNullable<MessageInitShape<typeof CommandSchema>['command']>

/**
 * State of a link.
 *
 * - `connecting`: the first attempt runs, at the start or after the connection was lost
 * - `up`: the core has sent `ready`
 * - `down`: the last attempt failed
 */
export type LinkState = 'connecting' | 'up' | 'down'

/** The only `WatchEvents` call of this gateway to one core. Reconnects with backoff. */
export interface EventLink {
  state(): LinkState
  /**
   * Sends a stream command if the link is `up`. Otherwise drops the command, because its
   * subscription ended with the connection.
   */
  send(command: LinkCommand): void
  start(): void
  stop(): void
}

const COMMANDS_PER_MESSAGE = 1_000
const READY_DEADLINE_MS = 5_000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 1_000
const STABLE_MS = 1_000

export function createEventLink(options: {
  watcher: Pick<Client<typeof MessagingService>, 'watchEvents'>
  clock: Clock
  random: () => number
  logger: FastifyBaseLogger
  /** Returns why the core refuses the token; undefined for codes of other failures. */
  tokenFault: (code: Code) => string | undefined
  onUp: () => void
  onDown: () => void
  onFrame: (frame: Frame) => void
}): EventLink {
  const { watcher, clock, random, logger } = options
  let state: LinkState = 'connecting'
  let queue = createCommandQueue()
  let call = new AbortController()
  let failures = 0
  let stopped = false
  let cancelRetry = () => {}

  async function connect(): Promise<void> {
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
            options.onUp()
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

  function receive(frame: Frame): void {
    if (state !== 'up') return
    try {
      options.onFrame(frame)
    } catch (error) {
      // One bad frame must not end the streams of all visitors.
      logger.error({ err: error, frame: frame.frame.case }, 'event frame failed; skipping it')
    }
  }

  function onLost(upSince: number | undefined, cause: ConnectError | undefined): void {
    const wasUp = upSince !== undefined
    if (wasUp || failures === 0) {
      const reason = cause && (options.tokenFault(cause.code) ?? cause.rawMessage)
      logger.warn({ reason: reason ?? 'the core ended the call' }, 'event link is down; reconnecting')
    }
    if (wasUp && clock.now() - upSince >= STABLE_MS) failures = 0
    state = wasUp ? 'connecting' : 'down'
    failures++
    const pause = backoffMs(failures, { minMs: BACKOFF_MIN_MS, maxMs: BACKOFF_MAX_MS, random })
    cancelRetry = clock.after(pause, () => void connect())
    options.onDown()
  }

  return {
    state: () => state,
    send: (command) => queue.push(command),
    start: () => void connect(),
    stop() {
      stopped = true
      cancelRetry()
      queue.close()
      call.abort()
    },
  }
}

/**
 * The stream commands that a link has not sent yet. The `WatchEvents` call reads them from here.
 */
interface CommandQueue extends AsyncIterable<{ commands: { command: LinkCommand }[] }> {
  push(command: LinkCommand): void
  close(): void
}

function createCommandQueue(): CommandQueue {
  let commands: { command: LinkCommand }[] = []
  let closed = false
  let wake = () => {}

  return {
    push(command) {
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
        if (commands.length > 0) yield { commands: commands.splice(0, COMMANDS_PER_MESSAGE) }
        if (commands.length === 0 && !closed) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    },
  }
}
