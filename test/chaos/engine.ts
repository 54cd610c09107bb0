import { execFile } from 'node:child_process'
import { cp, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { enginePlace } from '../../dev/engine/engine-place.ts'
import { isAlive } from '../support/proc.ts'
import { startProcess } from '../support/processes.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

export interface Engine {
  /** URI of the engine itself, not of a proxy. */
  uri: string
  /** Name of the cores' database. */
  database: string
  pid(): number
  kill(): void
  signal(signal: NodeJS.Signals): void
  /** False if the machine does not allow mount namespaces. The disk then cannot be filled. */
  hasOwnDisk: boolean
  fillDisk(): Promise<void>
  emptyDisk(): Promise<void>
  output(): string
  /** Copies the files of the database to this folder. */
  copyFiles(folder: string): Promise<void>
}

const run = promisify(execFile)
const diskSize = '512m'

/**
 * Returns a command prefix that runs a program in a mount namespace, with a small disk at the database folder. It
 * needs no root rights. Returns an empty list if the machine does not allow namespaces.
 */
async function smallDiskCommand(databaseDir: string): Promise<string[]> {
  const unshare = ['unshare', '--user', '--map-root-user', '--mount']
  const mount = `mount -t tmpfs -o size=${diskSize} tmpfs "$0"`
  const [program = '', ...args] = [...unshare, 'sh', '-c', mount, databaseDir]
  await mkdir(databaseDir)
  const isAllowed = await run(program, args).then(
    () => true,
    () => false,
  )
  return isAllowed ? [...unshare, 'sh', '-c', `${mount} && exec "$@"`, databaseDir] : []
}

/** A database whose processes the run does not control. */
export function externalEngine({ uri, name }: TestDatabase): { engine: Engine; stop(): Promise<void> } {
  const absent = () => {
    throw new Error('the engine is not part of this run')
  }
  const control = { pid: absent, kill: absent, signal: absent, fillDisk: absent, emptyDisk: absent }
  const files = { output: () => '', copyFiles: async () => {} }
  return { engine: { uri, database: name, hasOwnDisk: false, ...control, ...files }, stop: async () => {} }
}

/** Starts the engine of a run. Faults can stop and kill it, and fill its disk. */
export async function startEngine(dataDir: string): Promise<{ engine: Engine; stop(): Promise<void> }> {
  const { databaseDir, uri } = enginePlace(dataDir)
  const through = await smallDiskCommand(databaseDir)
  const entry = 'test/support/engine-holder.ts'
  const holder = await startProcess({ entry, name: 'engine', args: [dataDir], through })
  const pid = () => Number([...holder.output().matchAll(/"enginePid":(\d+)/g)].at(-1)?.[1])
  await until('the engine', () => holder.output().includes('"msg":"attached to the database engine"'))

  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(pid(), name)
    } catch {
      // No engine is running: the previous one has ended, and the next one has not started.
    }
  }
  // /proc/PID/root leads into the mount namespace.
  const disk = join(`/proc/${holder.pid}/root`, databaseDir)
  /** Path of the file that fills the small disk. */
  const filler = join(disk, 'filler')

  return {
    engine: {
      uri,
      database: 'service',
      pid,
      kill: () => signal('SIGKILL'),
      signal,
      hasOwnDisk: through.length > 0,
      // dd fails when the disk is full.
      fillDisk: () => run('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k']).then(fail, () => {}),
      emptyDisk: () => rm(filler, { force: true }),
      output: holder.output,
      copyFiles: (folder) => cp(disk, folder, { recursive: true, filter: (source) => source !== filler }),
    },
    async stop() {
      signal('SIGCONT')
      const last = pid()
      await holder.stop()
      await until('the engine to end', () => !isAlive(last))
    },
  }
}

function fail() {
  throw new Error('the disk did not fill up')
}
