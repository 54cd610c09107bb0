// Brings the database up to date: `npm run migrate`. docs/operating.md lists its flags.
import { parseArgs } from 'node:util'
import { createLogger } from '../platform/observability/logger.ts'
import { readCoreConfig } from './config.ts'
import { attachEngine } from './database/embedded/engine.ts'
import type { SchemaStatus } from './database/schema.ts'
import { openSchemaTools, type SchemaTools } from './database/schema-tools.ts'
import { shardPlans } from './database/shard-plan.ts'
import { createKeyring } from './keys/keyring.ts'
import { rekey } from './keys/rekey.ts'
import { createSealedSecrets } from './keys/sealed-secret-store.ts'
import { createSecretBox } from './keys/secret-box.ts'
import { settingsSecretKeys } from './secrets.ts'

const usage = `Brings the database up to date: creates missing indexes and runs migrations. Cores of the previous version can run meanwhile.

  npm run migrate                   makes all changes that this version needs
  npm run migrate -- --status       prints missing changes and changes nothing (same as --dry-run)
  npm run migrate -- --contract     also removes what only the previous version needed, once no core of it runs
  npm run migrate -- --rekey        seals every secret with the first key of SECRET_KEYS
  npm run migrate -- --shard-plan   prints how a sharded cluster should distribute each collection, and why
  npm run migrate -- --shard        applies that plan to a sharded cluster`

const flags = ['status', 'dry-run', 'contract', 'rekey', 'shard-plan', 'shard', 'help'] as const

function printStatus(status: SchemaStatus) {
  const { missing, toExpand, toContract } = status
  for (const each of missing) console.log(`missing      ${each}`)
  for (const { number, name } of toExpand) console.log(`to migrate   ${number} ${name}`)
  for (const { number, name } of toContract)
    console.log(`to contract  ${number} ${name} (--contract, once no older version runs)`)
  if (missing.length + toExpand.length === 0) console.log('The database has all that this version needs.')
}

async function run(tools: SchemaTools, options: Partial<Record<(typeof flags)[number], boolean>>) {
  if (options.status || options['dry-run']) return printStatus(await tools.status())
  if (options.shard) {
    const done = await tools.shard()
    return console.log(done ? 'The plan is applied.' : 'The server is not a sharded cluster: nothing was changed.')
  }
  if (options.rekey) {
    const keys = await settingsSecretKeys(readCoreConfig())
    const keyring = createKeyring(keys)
    const { kid } = keys[0]
    const { changed, inUse } = await rekey(createSealedSecrets(tools.collections), createSecretBox(keyring), kid)
    console.log(`${changed} sealed anew.`)
    for (const [used, count] of Object.entries(inUse)) console.log(`${used}: ${count} secrets`)
    const unused = keys.map((key) => key.kid).filter((id) => id !== kid && !inUse[id])
    return console.log(`No secret needs: ${unused.join(', ') || 'all keys are in use'}`)
  }
  printStatus(await tools.migrate({ contract: options.contract === true }))
}

async function main() {
  const flagOptions = Object.fromEntries(flags.map((flag) => [flag, { type: 'boolean' as const }]))
  const options = parseArgs({ options: flagOptions }).values as Partial<Record<(typeof flags)[number], boolean>>
  if (options.help) return console.log(usage)
  if (options['shard-plan']) return console.log(shardPlans.map(planLine).join('\n'))
  const config = readCoreConfig()
  const logger = createLogger('migrate', config.LOG_LEVEL)
  const engine = config.MONGODB_URI === '' ? await attachEngine({ dataDir: config.DATA_DIR, logger }) : undefined
  try {
    const tools = await openSchemaTools({
      uri: engine?.uri ?? config.MONGODB_URI,
      name: config.MONGODB_DATABASE,
      timeoutMs: config.MONGODB_TIMEOUT_MS,
    })
    await run(tools, options).finally(tools.close)
  } finally {
    await engine?.stop()
  }
}

function planLine({ collection, key, why }: (typeof shardPlans)[number]): string {
  return `${collection.padEnd(20)} ${(key ? JSON.stringify(key) : 'whole').padEnd(34)} ${why}`
}

main().catch((error: Error) => {
  console.error(`migrate: ${error.message}`)
  process.exit(1)
})
