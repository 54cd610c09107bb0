// `npm run backup -- FILE` and `npm run restore -- FILE [--replace]`: back up and restore the data folder
// of one machine.
import { parseArgs } from 'node:util'
import { readCoreConfig } from '../core/config.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { readDevConfig } from './config.ts'
import { backUp, restore } from './engine/backup.ts'

const { DATA_DIR } = readDevConfig()
const { MONGODB_URI, MONGODB_DATABASE, LOG_LEVEL } = readCoreConfig()

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}

try {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { replace: { type: 'boolean' } } })
  const [command, file] = positionals
  if (file === undefined) fail(`npm run ${command} -- FILE${command === 'restore' ? ' [--replace]' : ''}`)
  if (MONGODB_URI !== '')
    fail('MONGODB_URI is set: back up that database with its own tools (docs/operating.md#back-up-and-restore)')
  const options = { dataDir: DATA_DIR, file, logger: createLogger('backup', LOG_LEVEL) }
  if (command === 'restore') {
    const { report, keptAs } = await restore({ ...options, database: MONGODB_DATABASE, replaces: values.replace })
    console.log(`Restored ${file} to ${DATA_DIR}`)
    if (keptAs) console.log(`The replaced data is in ${keptAs}`)
    console.log(`Everything after the backup is undone, bans, revocations and erasures too. Read the report: ${report}`)
  } else {
    await backUp(options)
    console.log(`Backed up ${DATA_DIR} to ${file}`)
  }
} catch (error) {
  fail((error as Error).message)
}
