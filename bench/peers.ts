import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Packages of the compared systems, installed on first use. The service itself does not need them. */
const versions = {
  bullmq: '6.7.0',
  pg: '8.23.1',
  'pg-boss': '12.38.0',
  'graphile-worker': '0.18.0',
  '@durable-streams/server': '0.3.7',
  'socket.io': '4.8.4',
}
const folder = join(import.meta.dirname, '../.cache/bench')
const wanted = `${JSON.stringify({ private: true, dependencies: versions }, null, 2)}\n`
const run = promisify(execFile)

/**
 * Installs the packages of the compared systems in `.cache/bench`. They use the project's own
 * copy of ioredis. Throws if the packages cannot be installed.
 */
export async function installPeers(): Promise<void> {
  const manifest = join(folder, 'package.json')
  if ((await readFile(join(folder, 'installed'), 'utf8').catch(() => '')) === wanted) return
  await mkdir(folder, { recursive: true })
  await writeFile(manifest, wanted)
  const quiet = ['--omit=peer', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  await run('npm', ['install', ...quiet], { cwd: folder }).catch((error: { stderr?: string }) => {
    throw new Error(`npm cannot fetch ${Object.keys(versions).join(', ')}: ${error.stderr?.split('\n')[0] ?? 'no npm'}`)
  })
  await writeFile(join(folder, 'installed'), wanted)
}

/** What the bench uses of the package `pg`. */
export interface PgPool {
  Pool: new (options: {
    connectionString: string
    max: number
  }) => {
    query(query: string | { name: string; text: string; values: unknown[] }): Promise<{ rows: { id: unknown }[] }>
  }
  Client: new (options: {
    connectionString: string
  }) => {
    connect(): Promise<unknown>
    query(query: string): Promise<unknown>
  }
}

/** Loads a package of a compared system. */
export function requirePeer<Package>(name: keyof typeof versions): Package {
  return createRequire(join(folder, 'package.json'))(name) as Package
}

export const peerVersion = (name: keyof typeof versions): string => versions[name]

/** The version of a program, or undefined if it is not installed. */
export async function programVersion(program: string): Promise<string | undefined> {
  return run(program, ['--version']).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  )
}
