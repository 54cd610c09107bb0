import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const root = join(import.meta.dirname, '../..')
const readyWithinMs = 90_000
const pollMs = 50
/** Time for the last output of a process to arrive after its exit. */
const lastOutputMs = 500
const stopWithinMs = 20_000
/** Inherited variables. Variables of vitest and settings of the service in the shell are not inherited. */
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'http_proxy', 'https_proxy', 'no_proxy']

/** The inherited environment of started processes. */
export const inheritedEnvironment = (): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])))

export type ProcessSpec = {
  /** The file that Node runs, from the project's root: `core/main.ts`. */
  entry: string
  /** Its name in error messages. */
  name: string
  args?: string[]
  env?: Record<string, string>
  /** A wrapper program with arguments that executes Node. */
  through?: string[]
  /** Files that Node loads before the entry, from the project's root. */
  preload?: string[]
  /** The process is ready when this URL returns 200. If unset, it is ready immediately. */
  readyUrl?: string
}

export type StartedProcess = {
  pid: number
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Output so far, standard output and standard error interleaved. */
  output(): string
  /** Sends SIGTERM, and SIGKILL after 20 seconds. Resolves when the process has ended. */
  stop(): Promise<void>
}

let outputFolder: string | undefined

/** Also writes the output of each process to a file in this folder. */
export function keepOutputIn(folder: string): void {
  outputFolder = folder
}

/** Running processes of this test file. */
const started = new Set<StartedProcess>()

process.once('exit', () => {
  for (const running of started) running.kill('SIGKILL')
})

/** Stops all running processes. */
export async function stopStarted(): Promise<void> {
  await Promise.all([...started].map((running) => running.stop()))
}

/**
 * Starts a process of the service and waits until it is ready. Kills it when this process ends.
 * @throws an error with its output if it ends or is not ready within 90 seconds
 */
export const startProcess = async (spec: ProcessSpec): Promise<StartedProcess> => {
  const { entry, name, args = [], env = {}, through = [], preload = [], readyUrl } = spec
  const preloaded = ['test/support/end-with-parent.ts', ...preload].flatMap((file) => ['--import', join(root, file)])
  const [program = '', ...rest] = [...through, process.execPath, ...preloaded, join(root, entry), ...args]
  const child = spawn(program, rest, {
    cwd: root,
    env: {
      ...inheritedEnvironment(),
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let written = ''
  const kept = outputFolder && join(outputFolder, `${name.replace(/\W+/g, '-')}-${child.pid}.log`)
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      written += text
      if (kept) appendFileSync(kept, text)
    })
  }
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.on('close', (code, signal) => resolve({ code, signal }))
    // A grandchild can keep the pipes open, so `close` may never come.
    child.on('exit', (code, signal) => setTimeout(() => resolve({ code, signal }), lastOutputMs).unref())
    child.on('error', reject)
  })
  const running: StartedProcess = {
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    exited,
    output: () => written,
    stop: async () => {
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), stopWithinMs)
      await exited
      clearTimeout(force)
    },
  }
  started.add(running)
  void exited.finally(() => started.delete(running)).catch(() => {})
  if (readyUrl !== undefined) await untilReady({ name, readyUrl, running })
  return running
}

/** Ports that were returned before. Their processes may not listen yet. */
const given = new Set<number>()

/** A free port, different on each call. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  if (given.has(port)) return freePort()
  given.add(port)
  return port
}

const untilReady = async ({ name, readyUrl, running }: { name: string; readyUrl: string; running: StartedProcess }) => {
  let end: string | undefined
  const ended = running.exited.then(({ code, signal }) => {
    end = signal ?? `code ${code}`
  })
  const deadline = performance.now() + readyWithinMs
  while (end === undefined && performance.now() < deadline) {
    const answer = await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.status === 200) return
    await Promise.race([ended, delay(pollMs)])
  }
  running.kill('SIGKILL')
  await ended
  const what =
    end === undefined
      ? `was not ready at ${readyUrl} within ${readyWithinMs / 1000} s`
      : `ended (${end}) before it was ready`
  throw new Error(`${name} ${what}. It wrote:\n${running.output()}`)
}
