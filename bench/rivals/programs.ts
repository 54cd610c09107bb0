import { execFile } from 'node:child_process'
import { chown, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, type StartedProcess, startProgram } from '../../test/support/processes.ts'
import { scratchFolder } from '../measure.ts'

const run = promisify(execFile)

/** Packages of the compared systems, installed on first use. The service itself does not need them. */
const versions = {
  bullmq: '6.7.0',
  pg: '8.23.1',
  'pg-boss': '12.38.0',
  'graphile-worker': '0.18.0',
  '@durable-streams/server': '0.3.7',
  '@durable-streams/client': '0.2.7',
  'socket.io': '4.8.4',
  'socket.io-client': '4.8.4',
  eventsource: '5.1.5',
}
type Package = keyof typeof versions
const folder = join(import.meta.dirname, '../../.cache/bench')
const wanted = `${JSON.stringify({ private: true, dependencies: versions }, null, 2)}\n`

/** Installs the packages in `.cache/bench`, with npm. They use the project's own copy of ioredis. */
export async function installPeers(): Promise<void> {
  if ((await readFile(join(folder, 'installed'), 'utf8').catch(() => '')) === wanted) return
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), wanted)
  const quiet = ['--omit=peer', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  await run('npm', ['install', ...quiet], { cwd: folder }).catch((error: { stderr?: string }) => {
    throw new Error(`npm cannot fetch ${Object.keys(versions).join(', ')}: ${error.stderr?.split('\n')[0] ?? 'no npm'}`)
  })
  await writeFile(join(folder, 'installed'), wanted)
}

/** Loads a package. Its types are not installed. */
// biome-ignore lint/suspicious/noExplicitAny: the packages have types of their own, which the project does not install
export const requirePeer = (name: Package): any => createRequire(join(folder, 'package.json'))(name)

export const peerVersion = (name: Package): string => `${name} ${versions[name]}`

/** Gives files to a user of the system, such as `postgres`. Returns the ids of the user and of its group. */
export async function giveTo(user: string, paths: string[]): Promise<{ uid: number; gid: number }> {
  const idOf = async (flag: '-u' | '-g') => Number((await run('id', [flag, user])).stdout)
  const [uid, gid] = await Promise.all([idOf('-u'), idOf('-g')])
  for (const path of paths) await chown(path, uid, gid)
  return { uid, gid }
}

/** Starts PostgreSQL with an empty database. Its settings are the defaults, so each commit is synced to disk. */
export async function startPostgres(): Promise<{ running: StartedProcess; uri: string }> {
  const packages = '/usr/lib/postgresql'
  const [version] = (await readdir(packages).catch(() => [])).toSorted().reverse()
  if (version === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql)')
  const data = await scratchFolder('postgres')
  const port = await freePort()
  let through: string[] = []
  // PostgreSQL refuses to run as root.
  if (process.getuid?.() === 0) {
    const { uid, gid } = await giveTo('postgres', [data])
    through = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  }
  const command = (name: string, ...args: string[]) => [
    ...[...through, join(packages, version, 'bin', name)],
    ...['-D', join(data, 'data'), ...args],
  ]
  const [initdb = '', ...initArgs] = command('initdb', '-A', 'trust', '-U', 'bench', '-E', 'UTF8', '--no-locale')
  await run(initdb, initArgs)
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${data}`]
  const [server = '', ...args] = command('postgres', ...settings.flatMap((setting) => ['-c', setting]))
  return { running: await startProgram(server, args, port), uri: `postgres://bench@127.0.0.1:${port}/postgres` }
}

/** Starts Redis, which syncs its append-only file each second or before each answer. */
export async function startRedis(fsync: 'everysec' | 'always'): Promise<{ running: StartedProcess; port: number }> {
  await run('redis-server', ['--version']).catch(() => {
    throw new Error('redis-server is not installed (Debian: apt-get install redis-server)')
  })
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', await scratchFolder('redis')]
  const persistence = ['--logfile', 'redis.log', '--appendonly', 'yes', '--appendfsync', fsync, '--save', '']
  return { running: await startProgram('redis-server', [...args, ...persistence], port), port }
}
