import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, inheritedEnvironment } from '../test/support/processes.ts'
import { type Contender, compare, type Part, type Step, scratchFolder, tablesOf } from './measure.ts'

const root = join(import.meta.dirname, '..')
/** A fresh clone has none of these. `node_modules` and `.cache` are linked into the copy. */
const ownOnly = new Set(['node_modules', '.cache', '.data', '.git', 'dist'])
const readyWithinMs = 120_000

/** Measures the time from `npm start` to its ready message. */
export const part: Part = async (options) => {
  const clone = await scratchFolder('start')
  await cp(root, clone, { recursive: true, filter: (path) => !ownOnly.has(path.split('/').at(-1) ?? '') })
  for (const name of ['node_modules', '.cache']) await symlink(join(root, name), join(clone, name))
  const kind = (name: string, missing: string[]): Contender => ({
    name,
    about: 'in a copy of the sources, with the installed dependencies',
    async start() {
      for (const folder of missing) await rm(join(clone, folder), { recursive: true, force: true })
      const work = async () => ({ seconds: await timeToReady(clone) }) as never
      return { processes: {}, work, settled: async () => {}, stop: async () => {} }
    },
  })
  const contenders = [
    kind('the first time, with nothing built', ['.data', 'widget/dist', 'console/dist']),
    kind('on an empty data folder', ['.data']),
    kind('again', []),
  ]
  const title = '`npm start`, from the command to «ready»'
  const step: Step = { name: 'start', title, columns: [['seconds', 'seconds', 's', 2]], run: ({ work }) => work({}) }
  return tablesOf(await compare({ contenders, steps: [step], options, starts: 'round' }))
}

async function timeToReady(folder: string): Promise<number> {
  const [gateway, core, demo] = [await freePort(), await freePort(), await freePort()]
  const ports = { GATEWAY_PORT: String(gateway), CORE_PORT: String(core), DEMO_PORT: String(demo) }
  const env = { ...inheritedEnvironment(), ...ports, LOG_LEVEL: 'warn', METRICS_PORT: '0' }
  const began = performance.now()
  // Starts a process group, so that the signal also reaches the processes that npm's shell starts.
  const child = spawn('npm', ['start'], { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  const stop = (signal: NodeJS.Signals) =>
    child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, signal)
  const kill = () => stop('SIGKILL')
  process.once('exit', kill)
  let output = ''
  const ready = new Promise<number>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (output.includes('Service is ready.')) resolve(performance.now())
      })
  })
  const at = await Promise.race([ready, exited, once(AbortSignal.timeout(readyWithinMs), 'abort')])
  stop('SIGINT')
  await exited
  process.off('exit', kill)
  if (typeof at !== 'number') throw new Error(`npm start was not ready: ${output}`)
  return (at - began) / 1000
}
