import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { attachEngine } from '../../core/database/embedded/engine.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The run's MongoDB engine. Take a database of it with `testDatabase()`. */
    mongodbUri: string
  }
}

/** One engine for the whole run, in a folder of its own that goes with it. */
export default async (project: TestProject) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'service-test-'))
  const remove = () => rmSync(dataDir, { recursive: true, force: true })
  process.once('exit', remove)
  const engine = await attachEngine({ dataDir, logger: pino({ level: 'warn' }) })
  project.provide('mongodbUri', engine.uri)
  return async () => {
    await engine.stop()
    remove()
  }
}
