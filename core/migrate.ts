// Brings the database up to date: `npm run migrate`. docs/operating.md lists its flags.
import { parseArgs } from 'node:util'
import type { Logger } from 'pino'
import { createLogger } from '../platform/observability/logger.ts'
import { asUsageError, failStart } from '../platform/settings/start-faults.ts'
import { type CoreConfig, readCoreConfig, requireSettings } from './config.ts'
import { forgetWithdrawnKeys } from './database/key-check.ts'
import { createSealedSecrets, rekey } from './database/rekey.ts'
import type { SchemaStatus } from './database/schema.ts'
import { openSchemaTools, type SchemaTools } from './database/schema-tools.ts'
import { createKeyring, parseSecretKeys } from './keys/keyring.ts'
import { createSecretBox } from './keys/secret-box.ts'

const usage = `Brings the database up to date: creates missing indexes and runs migrations. Cores of the previous version can run meanwhile.

  npm run migrate                   makes all changes that this version needs
  npm run migrate -- --status       prints missing changes and changes nothing (same as --dry-run)
  npm run migrate -- --contract     also removes what only the previous version needed, once no core of it runs
  npm run migrate -- --rekey        seals every secret with the first key of SECRET_KEYS
  npm run migrate -- --restored     after a restore, before the cores start: makes every reader read its history again`

const flags = ['status', 'dry-run', 'contract', 'rekey', 'restored', 'help'] as const

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

async function run(tools: SchemaTools, config: CoreConfig, options: Partial<Record<(typeof flags)[number], boolean>>) {
  if (options.status || options['dry-run']) return printStatus(await tools.status())
  if (options.rekey) {
    requireSettings(config, 'SECRET_KEYS')
    const keys = parseSecretKeys(config.SECRET_KEYS)
    const keyring = createKeyring(keys)
    const { kid } = keys[0]
    const { changed, inUse } = await rekey(createSealedSecrets(tools.collections), createSecretBox(keyring), kid)
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

interface Preparation {
  config: CoreConfig
  stop(): Promise<void>
}

type Prepare = (given: CoreConfig, logger: Logger) => Promise<Preparation>

async function main(prepare: Prepare) {
  const flagOptions = Object.fromEntries(flags.map((flag) => [flag, { type: 'boolean' as const }]))
  const options = parseArgs({ options: flagOptions }).values as Partial<Record<(typeof flags)[number], boolean>>
  if (options.help) return console.log(usage)
  const given = readCoreConfig()
  const { config, stop } = await prepare(given, createLogger('migrate', given.LOG_LEVEL))
  try {
    requireSettings(config, 'MONGODB_URI')
    const tools = await openSchemaTools({
      uri: config.MONGODB_URI,
      name: config.MONGODB_DATABASE,
      timeoutMs: config.MONGODB_TIMEOUT_MS,
    })
    await run(tools, config, options).finally(tools.close)
  } finally {
    await stop()
  }
}

/** `prepare` adds settings that the environment lacks. */
export function runMigrate(prepare: Prepare) {
  main(prepare).catch((error: unknown) => failStart('migrate', asUsageError(error)))
}

if (import.meta.main) runMigrate(async (config) => ({ config, stop: async () => {} }))
