import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { attachEngine } from '../../core/database/embedded/engine.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** MongoDB engine of the test run. Use `testDatabase()` to get a database. */
    mongodbUri: string
  }
}

/** Starts one engine for the whole run, in a temporary folder. */
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
