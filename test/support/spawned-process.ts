import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const root = join(import.meta.dirname, '../..')
const readyWithinMs = 90_000
const lookEveryMs = 50
/** How long after its end a process's last output may take to arrive. */
const lastOutputMs = 500
const stopWithinMs = 20_000
/** What a process gets of this environment: nothing of vitest's, and no setting of the service from somebody's shell. */
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'http_proxy', 'https_proxy', 'no_proxy']

/** What every process that a test starts gets of the environment. */
export const inheritedEnvironment = (): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])))

export type ProcessSpec = {
  /** The file that Node runs, from the project's root: `core/main.ts`. */
  entry: string
  /** What it is called in failures. */
  name: string
  args?: string[]
  env?: Record<string, string>
  /** A program with its arguments that becomes Node in the end, as `exec` does. */
  through?: string[]
  /** Files that Node loads before the entry, from the project's root. */
  preload?: string[]
  /** The process counts as started once this answers 200; without it, at once. */
  readyUrl?: string
}

export type StartedProcess = {
  pid: number
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** All that it wrote so far, standard output and standard error in the order they came. */
  output(): string
  /** SIGTERM, and SIGKILL after 20 seconds. Resolves when it is gone. */
  stop(): Promise<void>
}

let outputFolder: string | undefined

/** From now on, what each process writes is kept in a file of this folder, too. */
export function keepOutputIn(folder: string): void {
  outputFolder = folder
}

/** All that run, in this test file or this program: each has the module to itself. */
const started = new Set<StartedProcess>()

process.once('exit', () => {
  for (const running of started) running.kill('SIGKILL')
})

/** Stops whatever still runs. */
export async function stopStarted(): Promise<void> {
  await Promise.all([...started].map((running) => running.stop()))
}

/**
 * Starts a real process of the service and waits until it is ready. It is killed when this process ends.
 * @throws with its output, when it ends or is not ready within 90 seconds
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
    // A grandchild that keeps the pipes open must not keep us waiting for the rest of the output.
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

/** Ports that were given out, whose processes may not listen yet. */
const given = new Set<number>()

/** A port that nothing listens on now, another one each time. */
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
    await Promise.race([ended, delay(lookEveryMs)])
  }
  running.kill('SIGKILL')
  await ended
  const what =
    end === undefined
      ? `was not ready at ${readyUrl} within ${readyWithinMs / 1000} s`
      : `ended (${end}) before it was ready`
  throw new Error(`${name} ${what}. It wrote:\n${running.output()}`)
}
