import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { attachEngine } from '../../dev/engine/engine.ts'
import { clusterUri, isSimulated } from '../cluster/config.ts'
import { startProcess } from './processes.ts'
import { until } from './until.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** URI of the database engine of the test run. Tests call `testDatabase()` to get a database. */
    mongodbUri: string
  }
}

const inMemory = '/dev/shm'
const neededBytes = 2 ** 31

/**
 * Returns a folder for the engine's data, in memory if there is room. Each test file creates many
 * indexes, which is slow on a disk.
 */
function folderForData() {
  try {
    const { bavail, bsize } = statfsSync(inMemory)
    return bavail * bsize > neededBytes ? inMemory : tmpdir()
  } catch {
    return tmpdir()
  }
}

/**
 * Starts one database engine for the whole test run, in a temporary folder. Starts none for
 * `npm run verify -- cluster`.
 */
export default async (project: TestProject) => {
  const cluster = clusterUri()
  if (cluster !== undefined) return project.provide('mongodbUri', cluster)
  const dataDir = mkdtempSync(join(folderForData(), 'service-test-'))
  const remove = () => rmSync(dataDir, { recursive: true, force: true })
  process.once('exit', remove)
  const engine = await attachEngine({ dataDir, logger: pino({ level: 'warn' }) })
  const simulated = isSimulated()
    ? await startProcess({ entry: 'test/replica-set/serve.ts', args: [engine.uri] })
    : undefined
  const uri = simulated && (await until('the simulated database', () => /^mongodb:.*$/m.exec(simulated.output())?.[0]))
  project.provide('mongodbUri', uri ?? engine.uri)
  return async () => {
    await simulated?.stop()
    await engine.stop()
    remove()
  }
}
