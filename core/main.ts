import { startCore } from './core.ts'
import { runCore } from './run-core.ts'

runCore(startCore)
