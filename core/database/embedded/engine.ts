import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { EngineError } from './engine-error.ts'
import { type EngineLink, openEngineLink } from './engine-link.ts'
import { enginePlace } from './engine-place.ts'
import { type NodeCommand, nodeForEngine } from './glibc.ts'
import { type HostedEngine, hostEngine } from './hosted-engine.ts'

const longestPingMs = 2_000
const steadyAfterMs = 10_000
const longestDelayMs = 5_000

export type Engine = {
  /**
   * Stays good over every restart of the engine and every change of its host. Names no database. It is a single server:
   * what must outlive a crash is written with `w: 1, j: true`, never `w: 'majority'` (see `durableWriteConcern`).
   */
  uri: string
  /** Leaves the engine, and closes it if this process hosts it. Nothing of ours runs afterwards. */
  stop(): Promise<void>
}

export type EngineOptions = {
  dataDir: string
  logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Aborting it is as good as `stop`. */
  signal?: AbortSignal
  /** How long a folder may be held by an engine that does not answer, in milliseconds. */
  heldForMs?: number
}

/**
 * Gives a data folder's engine: attaches to the one that answers there, or hosts it in a child process. Either way
 * it keeps watch until stopped. A hosted engine that dies is started again; when the process that hosted it goes
 * away, one of those still attached takes over. Drivers reconnect to the same address each time.
 *
 * @throws EngineError when there is no engine to be had, the signal's reason when aborted meanwhile
 */
export const attachEngine = async (options: EngineOptions): Promise<Engine> => {
  const { dataDir, logger, heldForMs = 10_000 } = options
  const stopping = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal
  signal.throwIfAborted()
  const place = enginePlace(dataDir)
  const up = Promise.withResolvers<void>()
  const aborted = new Promise<undefined>((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  let wasUp = false
  let silentSince: number | undefined = performance.now()
  let crashes = 0
  let looks = 0
  let command: NodeCommand | undefined

  const isUp = () => {
    wasUp = true
    silentSince = undefined
    looks = 0
    up.resolve()
  }

  const watchLink = async (link: EngineLink) => {
    isUp()
    await Promise.race([link.closed, aborted])
    link.close()
  }

  const watchHosted = async (hosted: HostedEngine) => {
    const since = performance.now()
    logger.info({ enginePid: hosted.pid, dataDir }, 'embedded MongoDB engine started')
    isUp()
    const how = await Promise.race([hosted.ended, aborted])
    if (signal.aborted) return hosted.stop()
    crashes = performance.now() - since > steadyAfterMs ? 1 : crashes + 1
    logger.error({ how, dataDir }, 'embedded MongoDB engine ended, starting it again')
    await pause(restartDelayMs(crashes))
  }

  const pause = (ms: number) => delay(ms, undefined, { signal }).catch(() => {})

  /** What cannot be had at the first try is the caller's to know; later it may still come back. */
  const miss = async (error: unknown) => {
    silentSince ??= performance.now()
    const held = error instanceof EngineError && error.reason === 'held'
    // Another process may be just starting or closing it.
    if (held && performance.now() - silentSince < heldForMs) return pause(Math.min(500, 50 * 2 ** looks++))
    if (!wasUp) throw error
    logger.error({ err: error, dataDir }, 'embedded MongoDB engine is gone')
    silentSince = undefined
    crashes += 1
    await pause(restartDelayMs(crashes))
  }

  const watch = async () => {
    while (!signal.aborted) {
      const link = await openEngineLink(place.socketPath, Math.min(heldForMs, longestPingMs), signal)
      if (link) {
        await watchLink(link)
        continue
      }
      try {
        command ??= await nodeForEngine({ logger, signal })
        await watchHosted(await hostEngine({ place, command, logger, signal }))
      } catch (error) {
        if (!signal.aborted) await miss(error)
      }
    }
  }

  const watching = watch()
  watching.then(() => up.reject(signal.reason), up.reject)
  await up.promise
  return {
    uri: place.uri,
    stop: async () => {
      stopping.abort()
      await watching
    },
  }
}

/** At once after the first end, then 100 ms, doubling up to 5 s. */
const restartDelayMs = (crashes: number) => (crashes <= 1 ? 0 : Math.min(longestDelayMs, 50 * 2 ** (crashes - 1)))
