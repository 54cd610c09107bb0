// `npm run backup -- FILE` and `npm run restore -- FILE`: back up and restore the data folder of one
// machine.
import { readCoreConfig } from '../core/config.ts'
import { createLogger } from '../platform/observability/logger.ts'
import { readDevConfig } from './config.ts'
import { backUp, restore } from './engine/backup.ts'

const [command, file] = process.argv.slice(2)
const { DATA_DIR } = readDevConfig()
const { MONGODB_URI, LOG_LEVEL } = readCoreConfig()

function fail(message: string): never {
  console.error(message)
  process.exit(1)
}

if (file === undefined) fail(`npm run ${command} -- FILE`)
if (MONGODB_URI !== '')
  fail('MONGODB_URI is set: back up that database with its own tools (docs/operating.md#back-up-and-restore)')
try {
  const options = { dataDir: DATA_DIR, file, logger: createLogger('backup', LOG_LEVEL) }
  await (command === 'restore' ? restore(options) : backUp(options))
  console.log(command === 'restore' ? `Restored ${file} to ${DATA_DIR}` : `Backed up ${DATA_DIR} to ${file}`)
} catch (error) {
  fail((error as Error).message)
}
