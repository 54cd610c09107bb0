import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const root = join(import.meta.dirname, '..')
const readyWithinMs = 30_000
const stopWithinMs = 10_000
const lookEveryMs = 50
/** What a process gets of this environment: no setting of the service from somebody's shell. */
const inherited = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'TZ']

/** Of this environment, what a process is given. */
export const environment = (): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))

export interface Running {
  pid: number
  kill(signal: NodeJS.Signals): void
  exited: Promise<unknown>
  /** SIGTERM, and SIGKILL where that is not enough. */
  stop(): Promise<void>
}

/** A process of the bench's own that does what it is told, one thing at a time. */
export interface Obedient extends Running {
  /** Errors: what it answered instead. */
  tell<Answer>(command: object): Promise<Answer>
}

const running = new Set<Running>()

process.once('exit', () => {
  for (const each of running) each.kill('SIGKILL')
})

/** Ends whatever still runs. */
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

/** A part of the service, as an operator would start it. It has started once `readyUrl` answers 200. */
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

/** A process of the bench, told what to do by messages. It has started once it says so. */
export async function startObedient(spec: NodeSpec): Promise<Obedient> {
  const args = [...(spec.nodeArgs ?? []), join(root, spec.entry), ...(spec.args ?? [])]
  const child = launch(process.execPath, args, ['ignore', 'ignore', 'inherit', 'ipc'], spec)
  let ready = false
  child.process.once('message', () => {
    ready = true
  })
  await untilReady(child, spec.entry, async () => ready)
  return {
    ...child,
    async tell<Answer>(command: object) {
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

/** Any other program. It has started once something listens on the port. */
export async function startProgram(program: string, args: string[], port: number): Promise<Running> {
  const child = launch(program, args, ['ignore', 'ignore', 'inherit'])
  await untilReady(child, program, () => answersAt(port))
  return child
}

/** A port that nothing listens on now. */
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
    await delay(lookEveryMs)
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
