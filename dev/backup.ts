// `npm run backup` and `npm run restore`: for the configured database, or the embedded engine of a data folder.
import { runBackup } from '../serve/backup.ts'
import { readDevConfig } from './config.ts'
import { withDatabase } from './local-core.ts'

const [command] = process.argv.splice(2, 1)
runBackup(command === 'restore' ? command : 'backup', (given, logger) =>
  withDatabase(given, readDevConfig(), { logger }),
)
