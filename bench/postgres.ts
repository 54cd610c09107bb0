import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, type StartedProcess, startProgram } from '../test/support/processes.ts'
import { giveTo } from './system-user.ts'
import { scratchFolder } from './workspace.ts'

const run = promisify(execFile)
const packages = '/usr/lib/postgresql'

/** A PostgreSQL server with an empty database. Its settings are the defaults, so each commit is synced to disk. */
export interface BenchPostgres {
  running: StartedProcess
  uri: string
}

/** Throws if PostgreSQL is not installed. */
export async function startPostgres(): Promise<BenchPostgres> {
  const [version] = (await readdir(packages).catch(() => [])).toSorted().reverse()
  if (version === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql)')
  const program = (name: string) => join(packages, version, 'bin', name)
  const folder = await scratchFolder('postgres')
  const port = await freePort()
  const asOther = await otherUser(folder)
  const data = ['-D', join(folder, 'data')]
  const [initdb = '', ...initArgs] = [...asOther, program('initdb'), ...data, '-A', 'trust', '-U', 'bench']
  await run(initdb, [...initArgs, '-E', 'UTF8', '--no-locale'])
  const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: folder }
  const [server = '', ...args] = [...asOther, program('postgres'), ...data]
  const running = await startProgram(
    server,
    [...args, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    port,
  )
  return { running, uri: `postgres://bench@127.0.0.1:${port}/postgres` }
}

/** PostgreSQL refuses to run as root. Returns the command that runs a program as another user, who gets the folder. */
async function otherUser(folder: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return []
  const { uid, gid } = await giveTo('postgres', [folder])
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
}
