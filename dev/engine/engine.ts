import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { BSON } from 'mongodb'
import type { Logger } from 'pino'
import { makePrivate } from '../../serve/private-folder.ts'
import { EngineError, enginePlace } from './engine-place.ts'
import { type NodeCommand, nodeForEngine } from './glibc.ts'
import { type HostedEngine, hostEngine } from './hosted-engine.ts'

const maxPingMs = 2_000
const stableAfterMs = 10_000
const maxDelayMs = 5_000

export type Engine = Awaited<ReturnType<typeof attachEngine>>

/**
 * Attaches to the engine of a data folder, or hosts it in a child process, and restarts it if it dies. When the
 * hosting process ends, an attached one takes over; drivers reconnect to the same address. Errors:
 * `EngineError`, the signal's reason.
 */
export const attachEngine = async (options: {
  dataDir: string
  logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Aborting it has the same effect as `stop`. */
  signal?: AbortSignal
  /** How long to wait for a folder whose engine does not respond. */
  heldForMs?: number
}) => {
  const { dataDir, logger, heldForMs = 10_000 } = options
  const stopping = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal
  signal.throwIfAborted()
  makePrivate(dataDir)
  const place = enginePlace(dataDir)
  const up = Promise.withResolvers<void>()
  const aborted = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  let wasUp = false
  let unavailableSince: number | undefined = performance.now()
  let crashes = 0
  let retries = 0
  let command: NodeCommand | undefined

  const isUp = () => {
    wasUp = true
    unavailableSince = undefined
    retries = 0
    up.resolve()
  }

  const watchHosted = async (hosted: HostedEngine) => {
    const since = performance.now()
    logger.info({ enginePid: hosted.pid, dataDir }, 'embedded MongoDB engine started')
    isUp()
    const how = await Promise.race([hosted.ended, aborted])
    if (signal.aborted) return hosted.stop()
    crashes = performance.now() - since > stableAfterMs ? 1 : crashes + 1
    logger.error({ how, output: hosted.lastOutput(), dataDir }, 'embedded MongoDB engine ended; restarting it')
    await pause(restartDelayMs(crashes))
  }

  const pause = (ms: number) => delay(ms, undefined, { signal }).catch(() => {})

  /** The first failure rejects the start. Later ones are retried. */
  const handleFailure = async (error: unknown) => {
    unavailableSince ??= performance.now()
    const held = error instanceof EngineError && error.reason === 'held'
    // Another process may be starting or closing the engine.
    if (held && performance.now() - unavailableSince < heldForMs) return pause(Math.min(500, 50 * 2 ** retries++))
    if (!wasUp) throw error
    logger.error({ err: error, dataDir }, 'embedded MongoDB engine is unavailable; retrying')
    unavailableSince = undefined
    crashes += 1
    await pause(restartDelayMs(crashes))
  }

  const watch = async () => {
    while (!signal.aborted) {
      const connection = await openEngineConnection(place.socketPath, Math.min(heldForMs, maxPingMs), signal)
      if (connection) {
        isUp()
        await Promise.race([connection.closed, aborted])
        connection.close()
        continue
      }
      try {
        command ??= await nodeForEngine({ logger, signal })
        await watchHosted(await hostEngine({ place, command, logger, signal }))
      } catch (error) {
        if (!signal.aborted) await handleFailure(error)
      }
    }
  }

  const watching = watch()
  watching.then(() => up.reject(signal.reason), up.reject)
  await up.promise
  return {
    /** Address without a database name. It stays valid across restarts and changes of the hosting process. */
    uri: place.uri,
    stop: async () => {
      stopping.abort()
      await watching
    },
  }
}

/** No delay after the first crash, 100 ms after the second. Each further crash doubles it, up to `maxDelayMs`. */
const restartDelayMs = (crashes: number) => (crashes <= 1 ? 0 : Math.min(maxDelayMs, 50 * 2 ** (crashes - 1)))

const headerBytes = 16
const opMsg = 2013

/**
 * Connects to an engine and waits for the reply to a ping, because a process paused by SIGSTOP still accepts
 * connections. Returns undefined if nobody listens or no reply came within `timeoutMs`.
 */
const openEngineConnection = async (socketPath: string, timeoutMs: number, signal: AbortSignal) => {
  const socket = connect(socketPath)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.on('error', () => {})
  socket.setTimeout(timeoutMs, () => socket.destroy())
  const abandon = () => socket.destroy()
  signal.addEventListener('abort', abandon, { once: true })
  socket.write(ping())
  const data = once(socket, 'data').then(() => true)
  const answered = await Promise.race([data, closed.then(() => false)]).catch(() => false)
  signal.removeEventListener('abort', abandon)
  socket.setTimeout(0)
  if (!answered) return undefined
  socket.resume()
  // `closed` resolves when the engine has ended.
  return { closed, close: () => socket.destroy() }
}

const ping = (): Buffer => {
  const body = BSON.serialize({ ping: 1, $db: 'admin' })
  const message = Buffer.alloc(headerBytes + 5 + body.length)
  message.writeInt32LE(message.length, 0)
  message.writeInt32LE(1, 4)
  message.writeInt32LE(opMsg, 12)
  message.set(body, headerBytes + 5)
  return message
}
