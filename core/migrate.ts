// Brings the database up to date: `npm run migrate`. docs/operating.md lists its flags.
import { parseArgs } from 'node:util'
import type { Logger } from 'pino'
import { createLogger } from '../platform/observability/logger.ts'
import { runCommand } from '../platform/settings/start-faults.ts'
import { type CoreConfig, readCoreConfig, requireSettings } from './config.ts'
import { forgetWithdrawnKeys } from './database/key-check.ts'
import { rekey } from './database/rekey.ts'
import { openSchemaTools, type SchemaStatus, type SchemaTools } from './database/schema.ts'
import { createKeyring, parseSecretKeys } from './keys/keyring.ts'
import { createSecretBox } from './keys/secret-box.ts'

const usage = `Brings the database up to date: creates missing indexes and runs migrations. Cores of the previous version can run meanwhile.

  npm run migrate                   makes all changes that this version needs
  npm run migrate -- --status       prints missing changes and changes nothing (same as --dry-run)
  npm run migrate -- --contract     also removes what only the previous version needed, once no core of it runs
  npm run migrate -- --rekey        seals every secret with the first key of SECRET_KEYS
  npm run migrate -- --restored     after a restore, before the cores start: makes every reader read its history again`

const flag = { type: 'boolean' } as const
const flags = { status: flag, 'dry-run': flag, contract: flag, rekey: flag, restored: flag, help: flag }
type Flags = { [Name in keyof typeof flags]?: boolean }

function printStatus(status: SchemaStatus) {
  const { missing, different, toExpand, toContract, unknown } = status
  for (const each of missing) console.log(`missing      ${each}`)
  for (const each of different) console.log(`different    ${each}: has other keys; drop it, then migrate`)
  for (const { _id, name, contractedAt, version } of unknown)
    console.log(
      `newer        ${_id} ${name}${contractedAt ? ` (needs ${version ? `version ${version}` : 'a newer version'})` : ''}`,
    )
  for (const { number, name } of toExpand) console.log(`to migrate   ${number} ${name}`)
  for (const { number, name } of toContract)
    console.log(`to contract  ${number} ${name} (--contract, once no older version runs)`)
  if (missing.length + different.length + toExpand.length + unknown.length === 0)
    console.log('The database has all that this version needs.')
}

async function run(tools: SchemaTools, config: CoreConfig, options: Flags) {
  if (options.status || options['dry-run']) return printStatus(await tools.status())
  if (options.rekey) {
    requireSettings(config, 'SECRET_KEYS')
    const keys = parseSecretKeys(config.SECRET_KEYS)
    const [{ kid }] = keys
    const box = createSecretBox(createKeyring(keys))
    const { changed, inUse } = await rekey(tools.collections, box, kid)
    console.log(`${changed} secrets re-encrypted.`)
    for (const [used, count] of Object.entries(inUse)) console.log(`${used}: ${count} secrets`)
    await forgetWithdrawnKeys(tools.collections.keys, keys)
    const unused = keys.map((key) => key.kid).filter((id) => id !== kid && !inUse[id])
    return console.log(`Keys that no secret uses: ${unused.join(', ') || 'none'}`)
  }
  const onWait = (holder: string) => console.error(`migrate: waiting for ${holder}, which holds the lock of migrations`)
  printStatus(await tools.migrate({ contract: options.contract === true, onWait }))
  if (!options.restored) return
  await tools.beginHistory()
  console.log('A new history has begun: streams of earlier sessions will read their history again.')
}

/** Adds settings that the environment lacks, for example the URI of a local database. */
export type Prepare = (given: CoreConfig, logger: Logger) => Promise<{ config: CoreConfig; stop(): Promise<void> }>

async function main(prepare: Prepare) {
  const options: Flags = parseArgs({ options: flags }).values
  if (options.help) return console.log(usage)
  const given = readCoreConfig()
  const { config, stop } = await prepare(given, createLogger('migrate', given.LOG_LEVEL))
  try {
    requireSettings(config, 'MONGODB_URI')
    const { MONGODB_URI: uri, MONGODB_DATABASE: name, MONGODB_TIMEOUT_MS: timeoutMs } = config
    const tools = await openSchemaTools({ uri, name, timeoutMs })
    await run(tools, config, options).finally(tools.close)
  } finally {
    await stop()
  }
}

export const runMigrate = (prepare: Prepare) => runCommand('migrate', () => main(prepare))

if (import.meta.main) runMigrate(async (config) => ({ config, stop: async () => {} }))
