import { runCore } from './run-core.ts'
import { startCore } from './start-core.ts'

runCore(startCore)
