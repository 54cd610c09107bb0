import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Db, MongoClient } from 'mongodb'
import type { Logger } from 'pino'
import { beginHistory } from '../../core/database/store-history.ts'
import { makePrivate } from '../../serve/private-folder.ts'
import { EngineError } from './engine-error.ts'
import { enginePlace } from './engine-place.ts'
import { nodeForEngine } from './glibc.ts'
import { hostEngine } from './hosted-engine.ts'
import { nudgeFolder } from './nudge.ts'
import { reportOf } from './restore-report.ts'

const run = promisify(execFile)

/** Files of a data folder that only a running engine needs. */
const runtimeFiles = ['engine', 'engine.sock', nudgeFolder]
const draftPrefix = '.restore-'
const keptPrefix = 'replaced-'
/** Entries of a data folder that are no data of the service. File systems create `lost+found`. */
const isForeign = (name: string) => name === 'lost+found' || name.startsWith(draftPrefix) || name.startsWith(keptPrefix)

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
    const unneeded = [...runtimeFiles, 'lost+found', `${draftPrefix}*`, `${keptPrefix}*`]
    const excluded = unneeded.map((name) => `--exclude=./${name}`)
    await run('tar', ['--create', '--gzip', '--file', archive, ...excluded, '--directory', dataDir, '.'])
    if ((await stateOf(dataDir)) !== before)
      throw new Error(`The data in ${dataDir} changed during the backup. Stop the service and repeat.`)
    await chmod(archive, 0o600)
    await rename(archive, target)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

interface RestoreOptions extends BackupOptions {
  /** Name of the service's database. */
  database: string
  /** Moves the present data to a folder of its own in the data folder, and restores in its place. */
  replaces?: boolean
  now?: () => number
}

interface Restored {
  /** Path of the report that says what the restore undoes. */
  report: string
  /** Where the replaced data is now. */
  keptAs?: string
}

/**
 * Restores an archive into a data folder. Writes and renames only inside the folder, because it may be
 * a volume. Changes the present data only when the restored data is complete; a repeat continues after a
 * crash. Begins a new history, so that every reader reads its messages again. Writes a report into the folder.
 *
 * @throws Error if the folder has files and `replaces` is not set, or if the archive is damaged or is
 * not a backup; EngineError `held` if an engine uses the folder
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { dataDir, file, logger, database, replaces = false, now = Date.now } = options
  const target = resolve(dataDir)
  const entriesOf = async (path: string) => (await readdir(path).catch(() => [])).filter((name) => !isForeign(name))
  const isEmpty = (await entriesOf(target)).length === 0
  if (!isEmpty && !replaces)
    throw new Error(
      `${dataDir} is not empty. With --replace, the restore keeps its data in a folder in it and reports what is lost.`,
    )
  makePrivate(target)
  const draft = await mkdtemp(join(target, draftPrefix))
  const at = new Date(now())
  const stamp = at.toISOString().replaceAll(':', '-')
  const report = `restore-report-${stamp}.md`
  try {
    await run('tar', ['--extract', '--gzip', '--file', resolve(file), '--directory', draft])
    if (!(await readdir(draft)).includes('mongodb')) throw new Error(`${file} is no backup of a data folder.`)
    // The engine checks its files when it opens them.
    const text = await withDatabase(draft, { database, logger }, async (restored) => {
      await beginHistory(restored)
      const facts = { file: basename(file), at, restored }
      if (isEmpty) return reportOf(facts)
      return withDatabase(target, { database, logger }, (replaced) => reportOf({ ...facts, replaced })).catch(
        (error: Error) => {
          if (error instanceof EngineError && error.reason === 'held') throw error
          logger.warn({ reason: error.name }, 'the present data cannot be read; the report compares nothing')
          return reportOf(facts)
        },
      )
    })
    await writeFile(join(draft, report), text, { mode: 0o600 })
    for (const name of runtimeFiles) await rm(join(draft, name), { recursive: true, force: true })
    const keptAs = isEmpty ? undefined : join(target, `${keptPrefix}${stamp}`)
    if (keptAs) {
      await mkdir(keptAs, { mode: 0o700 })
      for (const name of await entriesOf(target)) await rename(join(target, name), join(keptAs, name))
    }
    for (const name of await readdir(draft)) await rename(join(draft, name), join(target, name))
    // Also removes drafts of restores that were killed.
    for (const name of await readdir(target))
      if (name.startsWith(draftPrefix)) await rm(join(target, name), { recursive: true })
    return { report: join(target, report), ...(keptAs && { keptAs }) }
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    throw error
  }
}

/** Opens the database of a data folder, and closes its engine when `use` has ended. */
async function withDatabase<Result>(
  dataDir: string,
  { database, logger }: Pick<RestoreOptions, 'database' | 'logger'>,
  use: (db: Db) => Promise<Result>,
): Promise<Result> {
  return withEngine(dataDir, logger, async (uri) => {
    const client = new MongoClient(uri)
    return use(client.db(database)).finally(() => client.close())
  })
}

/** Opens and closes the engine, which repairs its files after a crash and writes its checkpoint. */
const closeCleanly = (dataDir: string, logger: BackupOptions['logger']) => withEngine(dataDir, logger, async () => {})

async function withEngine<Result>(
  dataDir: string,
  logger: BackupOptions['logger'],
  use: (uri: string) => Promise<Result>,
): Promise<Result> {
  makePrivate(dataDir)
  const place = enginePlace(await realpath(dataDir))
  const { signal } = new AbortController()
  const command = await nodeForEngine({ logger, signal })
  const engine = await hostEngine({ place, command, logger, signal })
  return use(place.uri).finally(() => engine.stop())
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
