// Hosts an embedded engine. Argument: its data folder.
import { attachEngine } from '../dev/engine/engine.ts'
import { handleCommands } from './commands.ts'

const [dataDir = ''] = process.argv.slice(2)
const { uri } = await attachEngine({ dataDir, logger: { info() {}, warn: console.warn, error: console.error } })
handleCommands(async () => uri)
