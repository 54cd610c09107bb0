import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, realpath, rename, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Logger } from 'pino'
import { makePrivate } from '../private-folder.ts'
import { enginePlace } from './engine-place.ts'
import { nodeForEngine } from './glibc.ts'
import { hostEngine } from './hosted-engine.ts'

const run = promisify(execFile)

/** Files of a data folder that only a running engine needs. */
const runtimeFiles = ['engine', 'engine.sock']

interface BackupOptions {
  dataDir: string
  /** Path of the archive. */
  file: string
  logger: Pick<Logger, 'info' | 'warn' | 'error'>
}

/**
 * Writes a data folder, with its secrets, into one compressed archive that only the owner of the
 * file can read. The service must be stopped. The archive appears only when it is complete. @throws
 * EngineError `held` if an engine uses the folder; Error if one was started during the backup
 */
export async function backUp({ dataDir, file, logger }: BackupOptions): Promise<void> {
  await closeCleanly(dataDir, logger)
  const before = await stateOf(dataDir)
  const target = resolve(file)
  const draft = await mkdtemp(join(dirname(target), '.backup-'))
  try {
    const archive = join(draft, 'archive')
    const excluded = runtimeFiles.map((name) => `--exclude=./${name}`)
    await run('tar', ['--create', '--gzip', '--file', archive, ...excluded, '--directory', dataDir, '.'])
    if ((await stateOf(dataDir)) !== before)
      throw new Error(`The data in ${dataDir} changed during the backup. Stop the service and repeat.`)
    await chmod(archive, 0o600)
    await rename(archive, target)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/**
 * Restores an archive as a new data folder. The folder appears only when it is complete.
 *
 * @throws Error if the folder has files, or if the archive is damaged or is not a backup
 */
export async function restore({ dataDir, file, logger }: BackupOptions): Promise<void> {
  const target = resolve(dataDir)
  const existing = await readdir(target).catch(() => [])
  if (existing.length > 0) throw new Error(`${dataDir} is not empty. Move it away, or set DATA_DIR to a new folder.`)
  await mkdir(dirname(target), { recursive: true })
  const draft = await mkdtemp(join(dirname(target), `.${basename(target)}-restore-`))
  try {
    await run('tar', ['--extract', '--gzip', '--file', resolve(file), '--directory', draft])
    if (!(await readdir(draft)).includes('mongodb')) throw new Error(`${file} is no backup of a data folder.`)
    // The engine checks its files when it opens them.
    await closeCleanly(draft, logger)
    for (const name of runtimeFiles) await rm(join(draft, name), { recursive: true, force: true })
    await rmdir(target).catch(() => {})
    await rename(draft, target)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

/** Opens and closes the engine, which repairs its files after a crash and writes its checkpoint. */
async function closeCleanly(dataDir: string, logger: BackupOptions['logger']): Promise<void> {
  makePrivate(dataDir)
  const place = enginePlace(await realpath(dataDir))
  const { signal } = new AbortController()
  const command = await nodeForEngine({ logger, signal })
  const engine = await hostEngine({ place, command, logger, signal })
  await engine.stop()
}

/** Returns names, sizes and times of the database's files. They change when an engine opens them. */
async function stateOf(dataDir: string): Promise<string> {
  const folder = join(dataDir, 'mongodb')
  const names = await readdir(folder, { recursive: true })
  const states = await Promise.all(
    names.sort().map(async (name) => {
      const { size, mtimeMs } = await stat(join(folder, name))
      return `${name} ${size} ${mtimeMs}`
    }),
  )
  return states.join('\n')
}
