import { setTimeout as delay } from 'node:timers/promises'
import { type Db, MongoClient } from 'mongodb'
import { beginHistory } from '../../core/database/store-history.ts'
import { dumpDatabase, restoreDump, restoreSnapshot } from '../support/database-dump.ts'
import { until } from '../support/until.ts'
import type { Recorder } from './history.ts'
import { isReady, type Part, type Service } from './service.ts'

/** Time for answers of stopped processes to reach the clients, in milliseconds. */
const settleMs = 500
/** Minimum time between the backup and the restore, in milliseconds. */
const betweenMs = 1_500
/**
 * Maximum time in milliseconds for which agents write to the restored logs before visitors reconnect, until
 * logs have grown past the visitors' positions. Only the epochs still tell these positions apart.
 */
const catchUpMs = 25_000

/**
 * Takes a backup, lets the clients go on, and restores the backup: like `mongorestore`, or like a
 * snapshot after which the operator runs `npm run migrate -- --restored`. Sometimes the gateways keep
 * running and resume their streams.
 */
export async function restoreBackup(
  { engine, cores, gateways, workers, alone }: Service,
  { draw, lastsMs, recorder }: { draw: number; lastsMs: number; recorder: Recorder },
): Promise<string> {
  return alone(async () => {
    const client = new MongoClient(engine.uri)
    const db = client.db(engine.database)
    try {
      await stopAll(cores)
      recorder.add({ kind: 'backed up' })
      const dump = await until('the backup', () => dumpDatabase(db).catch(() => undefined))
      await startAll(cores)
      await delay(betweenMs + lastsMs)
      const inner = [...workers, ...cores]
      const outer = draw % 2 === 0 ? [] : gateways
      await stopAll([...outer, ...inner])
      await delay(settleMs)
      // The engine's small disk has less free space than the server wants before it creates an index.
      await client.db('admin').command({ setParameter: 1, indexBuildMinAvailableDiskSpaceMB: 0 })
      const isSnapshot = draw % 3 === 0
      const before = await logEnds(db)
      await (isSnapshot ? restoreSnapshot(db, dump).then(() => beginHistory(db)) : restoreDump(db, dump))
      recorder.add({ kind: 'restored' })
      const undone = difference(before, await logEnds(db))
      await startAll(inner)
      if (outer.length > 0) await grownPast(undone, db)
      await startAll(outer)
      return `${isSnapshot ? 'snapshot' : 'backup'} restored, ${outer.length + inner.length} parts stopped`
    } finally {
      await client.close()
    }
  })
}

/** Returns the last sequence of each log. */
async function logEnds(db: Db): Promise<Map<string, number>> {
  const groups = [{ $group: { _id: '$conversationId', end: { $max: '$sequence' } } }]
  const rows = await db.collection('events').aggregate<{ _id: string; end: number }>(groups).toArray()
  return new Map(rows.map(({ _id, end }) => [_id, end]))
}

/** Returns the ends that are beyond those of other logs with the same id. */
const difference = (ends: Map<string, number>, others: Map<string, number>) =>
  new Map([...ends].filter(([id, end]) => end > (others.get(id) ?? end)))

/** Waits until a log in two has grown past its former end. */
async function grownPast(ends: Map<string, number>, db: Db): Promise<void> {
  const giveUpAt = performance.now() + catchUpMs
  for (let left = ends; left.size > ends.size / 2 && performance.now() < giveUpAt; await delay(300)) {
    const now = await logEnds(db).catch(() => undefined)
    if (now) left = difference(ends, now)
  }
}

async function stopAll(parts: Part[]) {
  for (const part of parts) await part.stop()
}

async function startAll(parts: Part[]) {
  await Promise.all(parts.map((part) => part.start()))
  for (const { name, url } of parts) await until(`${name} to be ready`, () => isReady(url))
}
