import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const root = join(import.meta.dirname, '..')
const readyWithinMs = 30_000
const stopWithinMs = 10_000
const pollMs = 50
/** Inherited environment variables. Settings of the service in the shell are not inherited. */
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ']

/** The inherited environment of started processes. */
export const environment = (): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))

export interface Running {
  pid: number
  kill(signal: NodeJS.Signals): void
  exited: Promise<unknown>
  /** Sends SIGTERM, then SIGKILL after a timeout. */
  stop(): Promise<void>
}

/** A bench process that executes commands one at a time. */
export interface CommandProcess extends Running {
  /** Rejects with the error of the process. */
  call<Answer>(command: object): Promise<Answer>
}

const running = new Set<Running>()

process.once('exit', () => {
  for (const each of running) each.kill('SIGKILL')
})

/** Stops all running processes. */
export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((each) => each.stop()))
}

interface NodeSpec {
  /** The file that Node runs, from the project's root. */
  entry: string
  args?: string[]
  env?: Record<string, string>
  nodeArgs?: string[]
}

/** Starts a process of the service. Resolves when `readyUrl` returns 200. */
export async function startPart(spec: NodeSpec & { readyUrl: string }): Promise<Running> {
  const guard = join(root, 'test/support/end-with-parent.ts')
  const args = [...(spec.nodeArgs ?? []), '--import', guard, join(root, spec.entry), ...(spec.args ?? [])]
  const child = launch(process.execPath, args, ['pipe', 'ignore', 'inherit'], spec)
  await untilReady(child, spec.entry, async () => {
    const answer = await fetch(spec.readyUrl, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
    await answer?.body?.cancel()
    return answer?.status === 200
  })
  return child
}

/** Starts a bench process that takes commands by IPC. Resolves when it is ready. */
export async function startCommandProcess(spec: NodeSpec): Promise<CommandProcess> {
  const args = [...(spec.nodeArgs ?? []), join(root, spec.entry), ...(spec.args ?? [])]
  const child = launch(process.execPath, args, ['ignore', 'ignore', 'inherit', 'ipc'], spec)
  let ready = false
  child.process.once('message', () => {
    ready = true
  })
  await untilReady(child, spec.entry, async () => ready)
  return {
    ...child,
    async call<Answer>(command: object) {
      child.process.send(command)
      const [message] = (await Promise.race([
        once(child.process, 'message'),
        child.exited.then(() => [{ error: `${spec.entry} ended` }]),
      ])) as [{ answer?: Answer; error?: string }]
      if (message.error !== undefined) throw new Error(`${spec.entry}: ${message.error}`)
      return message.answer as Answer
    },
  }
}

/** Starts another program. Resolves when it listens on the port. */
export async function startProgram(program: string, args: string[], port: number): Promise<Running> {
  const child = launch(program, args, ['ignore', 'ignore', 'inherit'])
  await untilReady(child, program, () => answersAt(port))
  return child
}

/** A free port. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function launch(
  program: string,
  args: string[],
  stdio: ('pipe' | 'ignore' | 'inherit' | 'ipc')[],
  { env = {} }: Pick<NodeSpec, 'env'> = {},
): Running & { process: ChildProcess } {
  const child = spawn(program, args, { cwd: root, env: { ...environment(), ...env }, stdio })
  const exited = new Promise((resolve) => {
    child.once('exit', resolve)
    child.once('error', resolve)
  })
  const started: Running & { process: ChildProcess } = {
    process: child,
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    exited,
    async stop() {
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      const force = setTimeout(() => child.kill('SIGKILL'), stopWithinMs)
      await exited
      clearTimeout(force)
    },
  }
  running.add(started)
  void exited.finally(() => running.delete(started))
  return started
}

async function untilReady(child: Running, name: string, isReady: () => Promise<boolean>): Promise<void> {
  let ended = false
  void child.exited.then(() => {
    ended = true
  })
  const deadline = performance.now() + readyWithinMs
  while (!ended && performance.now() < deadline) {
    if (await isReady()) return
    await delay(pollMs)
  }
  child.kill('SIGKILL')
  throw new Error(`${name} ${ended ? 'ended before it was ready' : 'was not ready in time'}`)
}

async function answersAt(port: number): Promise<boolean> {
  const { connect } = await import('node:net')
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
