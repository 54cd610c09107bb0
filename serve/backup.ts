// `npm run backup` and `npm run restore`: back up and restore a database and the secrets of a data folder.

import { existsSync, statSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isDeepStrictEqual, parseArgs } from 'node:util'
import type { Logger } from 'pino'
import { type CoreConfig, readCoreConfig, requireSettings } from '../core/config.ts'
import { type BackupContent, openBackups, readBackup } from '../core/database/backup.ts'
import type { Prepare } from '../core/migrate.ts'
import { startCore } from '../core/start-core.ts'
import { listWorkspaces } from '../core/workspaces/workspaces.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { runCommand } from '../platform/settings/start-faults.ts'
import { readServeConfig } from './config.ts'
import { type DataFolderSecrets, readSecrets, secretsFile } from './data-folder.ts'
import { makePrivate, writePrivately } from './private-folder.ts'

interface Run {
  config: CoreConfig
  logger: Logger
  dataDir: string
  folder: string
  keep: number
  passphrase: string
  backups: Awaited<ReturnType<typeof openBackups>>
  file: string | undefined
  flags: { drill?: boolean; replace?: boolean }
}

const ownName = /^service-[\dTZ.-]+\.backup$/
const stampOf = (at: Date) => at.toISOString().replaceAll(':', '-')

const commands = { backup, restore }

/**
 * Writes a backup and verifies it. Without a file or folder, writes it into the folder of backups, and removes the
 * oldest ones there. With `--drill`, also restores it and starts a core.
 */
async function backup(run: Run) {
  const { backups, passphrase, folder, file, keep, flags } = run
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const name = `service-${stampOf(new Date())}.backup`
  const isFolder = file !== undefined && statSync(file, { throwIfNoEntry: false })?.isDirectory()
  const path = isFolder ? join(file, name) : (file ?? join(folder, name))
  const content = await write(run, path)
  await backups.record('backup')
  console.log(`Backed up and verified ${documentsIn(content)} documents: ${path}`)
  if (file === undefined) {
    const old = (await readdir(folder))
      .filter((name) => ownName.test(name))
      .sort()
      .slice(0, -keep)
    for (const name of old) await rm(join(folder, name))
  }
  if (!flags.drill) return
  const drilled = await drill(run, { path, passphrase })
  await backups.record('drill')
  console.log(`Restored ${documentsIn(drilled)} documents into a second database, and started a core on it.`)
}

async function write({ backups, passphrase, dataDir }: Run, path: string) {
  const present = join(dataDir, secretsFile)
  const secrets = readSecrets(present) && (await readFile(present, 'utf8'))
  const content = await backups.write({ path, passphrase, secrets })
  if (!isDeepStrictEqual(await readBackup({ path, passphrase }), content))
    throw new Error(`${path} is not as it was written.`)
  return content
}

async function drill({ backups, config, logger }: Run, file: { path: string; passphrase: string }) {
  const name = `${config.MONGODB_DATABASE}_drill`
  await backups.drop(name)
  try {
    const content = await backups.restore(file, name)
    const core = await startCore({ ...config, ...keysIn(content), MONGODB_DATABASE: name }, { logger })
    try {
      const found = await listWorkspaces(core, '', 1000)
      if (found.length !== Math.min(content.counts.workspaces ?? 0, 1000))
        throw new Error('The drill lacks workspaces.')
    } finally {
      await core.stop()
    }
    return content
  } finally {
    await backups.drop(name)
  }
}

/** Restores into an empty database. With `--replace`, first backs the present data up and reports what is undone. */
async function restore(run: Run) {
  const { backups, config, dataDir, folder, passphrase, file, flags } = run
  if (file === undefined) throw new SettingError('name the file of a backup')
  const from = { path: file, passphrase }
  const { secrets } = await readBackup(from)
  const isEmpty = await backups.isEmpty()
  if (!isEmpty && !flags.replace)
    throw new Error('The database is not empty. --replace backs its data up first, then replaces it.')
  const at = new Date()
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const facts = { file: basename(file), at, restored: config.MONGODB_DATABASE }
  let report: string | undefined
  if (!isEmpty) {
    const kept = join(folder, `replaced-${stampOf(at)}.backup`)
    await write(run, kept)
    console.log(`The present data is in ${kept}`)
    const second = `${config.MONGODB_DATABASE}_drill`
    await backups.drop(second)
    try {
      await backups.restore(from, second)
      report = await backups.report({ ...facts, restored: second, replaced: config.MONGODB_DATABASE })
    } finally {
      await backups.drop(second)
    }
  }
  if (secrets !== undefined) await putSecrets(dataDir, secrets, at)
  if (!isEmpty) await backups.drop()
  const content = await backups.restore(from)
  report ??= await backups.report(facts)
  const place = join(dataDir, `restore-report-${stampOf(at)}.md`)
  await writeFile(place, report, { mode: 0o600 })
  console.log(`Restored ${documentsIn(content)} documents of ${content.at.toISOString()}`)
  console.log(`Everything after the backup is undone, bans, revocations and erasures too. Read the report: ${place}`)
}

async function putSecrets(dataDir: string, secrets: string, at: Date) {
  const path = join(dataDir, secretsFile)
  const present = existsSync(path) ? await readFile(path, 'utf8') : undefined
  if (present === secrets) return
  if (present !== undefined) await rename(path, join(dataDir, `secrets-${stampOf(at)}.json`))
  await writePrivately(path, secrets)
}

/** Returns the keys of a backup as settings. If it has none, the settings of the process must have them. */
function keysIn({ secrets }: BackupContent): Partial<CoreConfig> {
  if (secrets === undefined) return {}
  const { secretKeys, workspaceSessionSecret }: DataFolderSecrets = JSON.parse(secrets)
  return { SECRET_KEYS: secretKeys, WORKSPACE_SESSION_SECRET: workspaceSessionSecret }
}

const documentsIn = ({ counts }: BackupContent) => Object.values(counts).reduce((sum, count) => sum + count, 0)

async function main(command: keyof typeof commands, prepare: Prepare) {
  const options = { drill: { type: 'boolean' }, replace: { type: 'boolean' } } as const
  const { positionals, values } = parseArgs({ allowPositionals: true, options })
  const { DATA_DIR, BACKUP_DIR, BACKUP_KEEP, BACKUP_PASSPHRASE, env } = readServeConfig()
  const given = readCoreConfig(env)
  // The core of a drill stops amid its work, which is no fault.
  const logger = createLogger('backup', 'error')
  makePrivate(DATA_DIR)
  const { config, stop } = await prepare(given, logger)
  try {
    requireSettings(config, 'MONGODB_URI')
    const { MONGODB_URI: uri, MONGODB_DATABASE: name, MONGODB_TIMEOUT_MS: timeoutMs } = config
    const backups = await openBackups({ uri, name, timeoutMs })
    const folder = BACKUP_DIR || join(DATA_DIR, 'backups')
    const places = { dataDir: DATA_DIR, folder, keep: BACKUP_KEEP, passphrase: BACKUP_PASSPHRASE }
    await commands[command]({ config, logger, ...places, backups, file: positionals[0], flags: values }).finally(
      backups.close,
    )
  } finally {
    await stop()
  }
}

export const runBackup = (command: keyof typeof commands, prepare: Prepare) =>
  runCommand(command, () => main(command, prepare))
