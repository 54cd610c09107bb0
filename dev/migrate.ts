// `npm run migrate`: migrates the configured database, or the embedded engine of a data folder.
import { runMigrate } from '../core/migrate.ts'
import { readDevConfig } from './config.ts'
import { completeSettings } from './local-core.ts'

runMigrate((given, logger) => completeSettings(given, readDevConfig(), { logger }))
