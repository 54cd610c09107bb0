import type { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import { everyTicks } from '../concurrency/ticks.ts'

export type Connection = Writable & { readonly bytesWritten?: number }

interface Progress {
  /** Number of bytes that have left the process. */
  sent: number
  /** Number of consecutive checks with unsent bytes and an unchanged `sent`. */
  stalledChecks: number
}

interface UnreadLimits {
  /** A connection that takes no unsent bytes for this time, as counted by checks, is destroyed. */
  maxMs: number
  /** Maximum number of unsent bytes of one connection. Larger answers must be streamed. */
  maxBytes: number
  /** Maximum number of unsent bytes of all connections of a listener. */
  totalMaxBytes: number
}

const MIB = 1024 * 1024
export const publicLimits: UnreadLimits = { maxMs: 30_000, maxBytes: MIB, totalMaxBytes: 64 * MIB }
const CHECK_MS = 1_000

export function createUnreadAnswers(limits: UnreadLimits = publicLimits) {
  const connections = new Map<Connection, Progress>()

  function forget(this: Connection) {
    connections.delete(this)
  }

  return {
    add(connection: Connection) {
      connections.set(connection, { sent: 0, stalledChecks: 0 })
      connection.on('close', forget)
    },
    /**
     * Destroys connections that break a limit, and those that wait longest if all have too many unsent bytes.
     * Must be called every second. Counts its calls instead of time, so that a suspended process or a clock
     * that jumps destroys no reader.
     */
    check() {
      const waiting: [Connection, Progress][] = []
      let total = 0
      for (const [connection, progress] of connections) {
        const unsent = connection.writableLength
        const sent = (connection.bytesWritten ?? 0) - unsent
        progress.stalledChecks = unsent === 0 || sent !== progress.sent ? 0 : progress.stalledChecks + 1
        progress.sent = sent
        const isOver = unsent > limits.maxBytes || progress.stalledChecks * CHECK_MS >= limits.maxMs
        if (isOver) connection.destroy()
        else if (unsent > 0) {
          waiting.push([connection, progress])
          total += unsent
        }
      }
      if (total <= limits.totalMaxBytes) return
      for (const [connection] of waiting.sort(([, one], [, other]) => other.stalledChecks - one.stalledChecks)) {
        total -= connection.writableLength
        connection.destroy()
        if (total <= limits.totalMaxBytes) return
      }
    },
  }
}

/** Bounds the unread answers of a server until it closes. `events` of the server bring a new connection or stream. */
export function boundUnreadAnswers(
  server: EventEmitter,
  options: { limits?: UnreadLimits; events?: ('connection' | 'secureConnection' | 'stream')[] } = {},
) {
  const answers = createUnreadAnswers(options.limits)
  for (const event of options.events ?? ['connection']) server.on(event, answers.add)
  server.once('close', everyTicks(CHECK_MS, answers.check))
}
