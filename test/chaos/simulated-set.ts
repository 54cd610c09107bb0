import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { attachEngine } from '../../dev/engine/engine.ts'
import { type ReplicaSet, startReplicaSet } from '../replica-set/replica-set.ts'
import type { TestDatabase } from '../support/test-database.ts'

/** Starts a simulated replica set before an engine of its own. */
export async function startSimulatedSet(): Promise<{
  database: TestDatabase
  replicaSet: ReplicaSet
  stop(): Promise<void>
}> {
  const dataDir = await mkdtemp(join(tmpdir(), 'service-set-'))
  const engine = await attachEngine({ dataDir, logger: pino({ level: 'warn' }) })
  const replicaSet = await startReplicaSet(engine.uri)
  return {
    database: { uri: replicaSet.uri, name: 'service-chaos' },
    replicaSet,
    async stop() {
      await replicaSet.close()
      await engine.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
