import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

export { freePort } from './free-port.ts'

/** Root folder of this checkout, in which processes for tests and benches start by default. */
const ownRoot = join(import.meta.dirname, '../..')
const readyWithinMs = 90_000
const pollMs = 50
/** Maximum time to wait for the last output of a process after its exit, in milliseconds. */
const lastOutputMs = 500
const stopWithinMs = 20_000
/**
 * Environment variables that started processes inherit. They do not inherit Vitest's variables or
 * settings of the service.
 */
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ', 'http_proxy', 'https_proxy', 'no_proxy']

export const inheritedEnvironment = (): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((key) => (process.env[key] ? [[key, process.env[key]]] : [])))

export type ProcessSpec = {
  /** File that Node runs, as a path from the project's root, for example `core/main.ts`. */
  entry: string
  /** Root folder of the checkout that is started. Default: this one. */
  root?: string | undefined
  /** Name of the process in error messages. Default: the entry. */
  name?: string
  args?: string[]
  env?: Record<string, string>
  /** A wrapper program and its arguments. The wrapper executes Node. */
  through?: string[]
  /** Arguments of Node itself. */
  nodeArgs?: string[]
  /** Files that Node loads before the entry, as paths from the project's root. */
  preload?: string[]
  /** The process is ready when this URL returns 200. If unset, it is ready immediately. */
  readyUrl?: string
  /** Also prints the standard error of the process. */
  showErrors?: boolean
}

export type StartedProcess = {
  pid: number
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Returns the output so far: standard output and standard error, interleaved. */
  output(): string
  /** Sends SIGTERM, and SIGKILL after 20 seconds. Resolves when the process has ended. */
  stop(): Promise<void>
}

/** A process that executes commands one at a time. */
export interface CommandProcess extends StartedProcess {
  /** Sends a command and returns the answer of the process. Rejects if the process answers with an error. */
  call<Answer>(command: object): Promise<Answer>
}

let outputFolder: string | undefined

/** Makes processes that start from now on also write their output to files in this folder. */
export function keepOutputIn(folder: string): void {
  outputFolder = folder
}

const started = new Set<StartedProcess>()

process.once('exit', () => {
  for (const running of started) running.kill('SIGKILL')
})

export async function stopStarted(): Promise<void> {
  await Promise.all([...started].map((running) => running.stop()))
}

/**
 * Starts a process of the service and waits until it is ready. The started process is killed when
 * the calling process ends.
 * @throws an error with the process's output if the process ends or is not ready within 90 seconds
 */
export async function startProcess(spec: ProcessSpec): Promise<StartedProcess> {
  const { running } = launchNode(spec, ['pipe', 'pipe', 'pipe'])
  const { name = spec.entry, readyUrl } = spec
  if (readyUrl !== undefined) await untilReady(running, name, readyUrl, () => isOk(readyUrl))
  return running
}

/** Starts a process that takes commands by IPC (`handleCommands`). Resolves when it is ready. */
export async function startCommandProcess(spec: ProcessSpec): Promise<CommandProcess> {
  const { child, running } = launchNode({ showErrors: true, ...spec }, ['pipe', 'pipe', 'pipe', 'ipc'])
  let isReady = false
  child.once('message', () => {
    isReady = true
  })
  await untilReady(running, spec.entry, 'its first message', async () => isReady)
  return {
    ...running,
    async call<Answer>(command: object) {
      child.send(command)
      const [message] = (await Promise.race([
        once(child, 'message'),
        running.exited.then(() => [{ error: 'ended' }]),
      ])) as [{ answer?: Answer; error?: string }]
      if (message.error !== undefined) throw new Error(`${spec.entry}: ${message.error}`)
      return message.answer as Answer
    },
  }
}

/** Starts another program. Resolves when it listens on the port. */
export async function startProgram(program: string, args: string[], port: number): Promise<StartedProcess> {
  const { running } = launch(program, program, args, {}, ['ignore', 'pipe', 'pipe'])
  await untilReady(running, program, `port ${port}`, () => isListening(port))
  return running
}

function launchNode({ entry, name = entry, root = ownRoot, ...spec }: ProcessSpec, stdio: StdioOptions) {
  const { args = [], through = [], nodeArgs = [], preload = [] } = spec
  const preloaded = ['test/support/end-with-parent.ts', ...preload].flatMap((file) => ['--import', join(root, file)])
  const [program = '', ...rest] = [...through, process.execPath, ...nodeArgs, ...preloaded, join(root, entry), ...args]
  const launched = launch(name, program, rest, { NODE_COMPILE_CACHE: compileCache, ...spec.env }, stdio, root)
  if (spec.showErrors) launched.child.stderr?.pipe(process.stderr, { end: false })
  return launched
}

/** Folder of Node's compile cache. With it, a process does not compile modules that an earlier process has loaded. */
const compileCache = join(ownRoot, '.cache/node')

function launch(
  name: string,
  program: string,
  args: string[],
  env: Record<string, string>,
  stdio: StdioOptions,
  root = ownRoot,
): { child: ChildProcess; running: StartedProcess } {
  const child = spawn(program, args, { cwd: root, env: { ...inheritedEnvironment(), ...env }, stdio })
  let written = ''
  const kept = outputFolder && join(outputFolder, `${name.replace(/\W+/g, '-')}-${child.pid}.log`)
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      written += text
      if (kept) appendFileSync(kept, text)
    })
  }
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.on('close', (code, signal) => resolve({ code, signal }))
    // A grandchild can keep the pipes open, so the event `close` may never be emitted.
    child.on('exit', (code, signal) => setTimeout(() => resolve({ code, signal }), lastOutputMs).unref())
    child.on('error', reject)
  })
  const running: StartedProcess = {
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    exited,
    output: () => written,
    async stop() {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), stopWithinMs)
      await exited
      clearTimeout(force)
    },
  }
  started.add(running)
  void exited.finally(() => started.delete(running)).catch(() => {})
  return { child, running }
}

async function untilReady(running: StartedProcess, name: string, what: string, isReady: () => Promise<boolean>) {
  let end: string | undefined
  const ended = running.exited.then(({ code, signal }) => {
    end = signal ?? `code ${code}`
  })
  const deadline = performance.now() + readyWithinMs
  while (end === undefined && performance.now() < deadline) {
    if (await isReady()) return
    await Promise.race([ended, delay(pollMs)])
  }
  const fault = end === undefined ? `was not ready (${what}) in time` : `ended (${end}) before it was ready`
  running.kill('SIGKILL')
  await ended
  throw new Error(`${name} ${fault}. It wrote:\n${running.output()}`)
}

async function isOk(url: string): Promise<boolean> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.status === 200
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return once(socket, 'connect').then(
    () => {
      socket.destroy()
      return true
    },
    () => false,
  )
}
