import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort, inheritedEnvironment } from '../../test/support/processes.ts'
import type { Part } from '../part.ts'
import { scratchFolder } from '../workspace.ts'

const root = join(import.meta.dirname, '../..')
/**
 * Folders that the copy of the project omits, because a fresh clone does not contain them.
 * Afterwards, `node_modules` and `.cache` are linked into the copy.
 */
const ownOnly = new Set(['node_modules', '.cache', '.data', '.git', 'dist'])
const readyWithinMs = 120_000

/** Measures the time from `npm start` to its ready message. */
export const startPart: Part = async ({ rounds, log }) => {
  const clone = await scratchFolder('start')
  await cp(root, clone, { recursive: true, filter: (path) => !ownOnly.has(path.split('/').at(-1) ?? '') })
  for (const name of ['node_modules', '.cache']) await symlink(join(root, name), join(clone, name))
  const kinds = {
    'the first time, with nothing built': ['.data', 'widget/dist', 'console/dist'],
    'on an empty data folder': ['.data'],
    again: [],
  }
  const seconds = new Map(Object.keys(kinds).map((name) => [name, [] as number[]]))
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, missing] of Object.entries(kinds)) {
      for (const folder of missing) await rm(join(clone, folder), { recursive: true, force: true })
      const elapsed = await timeToReady(clone)
      seconds.get(name)?.push(elapsed)
      log(`round ${round + 1}, ${name}: ${elapsed.toFixed(2)} s`)
    }
  }
  return [
    {
      title: '`npm start`, from the command to «ready»',
      columns: ['', 'seconds'],
      rows: [...seconds].map(([name, values]) => ({ name, cells: [{ values, unit: 's', digits: 2 }] })),
      notes: ['Measured in a copy of the sources, with the installed dependencies of this project.'],
    },
  ]
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
  const late = AbortSignal.timeout(readyWithinMs)
  const at = await Promise.race([ready, exited, once(late, 'abort')])
  stop('SIGINT')
  await exited
  process.off('exit', kill)
  if (typeof at !== 'number') throw new Error(`npm start was not ready: ${output}`)
  return (at - began) / 1000
}
