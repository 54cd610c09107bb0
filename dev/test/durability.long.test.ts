import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Collection } from 'mongodb'
import { pino } from 'pino'
import { expect, it, onTestFinished } from 'vitest'
import { writeConcernFor } from '../../core/database/client-options.ts'
import { openDatabase } from '../../core/database/database.ts'
import { attachEngine } from '../engine/engine.ts'

/** Opens a database on an engine of its own. The test reads the engine's journal. */
const openOwn = async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'durability-test-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const engine = await attachEngine({ dataDir, logger: pino({ level: 'silent' }) })
  onTestFinished(() => engine.stop())
  const database = await openDatabase({ uri: engine.uri, name: 'test', timeoutMs: 20_000 })
  onTestFinished(() => database.close())
  const journal = join(dataDir, 'mongodb', 'journal')
  const logs = () => readdirSync(journal).filter((name) => name.startsWith('WiredTigerLog.'))
  return {
    collections: database.collections,
    isInJournal: (text: string) => logs().some((name) => readFileSync(join(journal, name)).includes(text)),
  }
}

const inserted = 25

it('an acknowledged insert is in the journal even if the engine is not a replica set', async () => {
  const { collections, isInJournal } = await openOwn()
  const written = collections.events as unknown as Collection<{ _id: string }>
  const missing: number[] = []
  for (let at = 0; at < inserted; at += 1) {
    const _id = randomBytes(16).toString('hex')
    await written.insertOne({ _id, conversationId: _id, sequence: 1 } as { _id: string })
    if (!isInJournal(_id)) missing.push(at)
  }
  expect(missing).toEqual([])
})

it('an acknowledged update is in the journal', async () => {
  const { collections, isInJournal } = await openOwn()
  const written = collections.visitors as unknown as Collection<{ _id: string; text?: string }>
  const missing: number[] = []
  for (let at = 0; at < inserted; at += 1) {
    const text = randomBytes(16).toString('hex')
    await written.findOneAndUpdate({ _id: 'one' }, { $set: { text } }, { upsert: true })
    if (!isInJournal(text)) missing.push(at)
  }
  expect(missing).toEqual([])
})

it.each([
  ['a single server', { isWritablePrimary: true, maxWireVersion: 27 }, 1],
  ['a replica set', { isWritablePrimary: true, setName: 'rs0' }, 'majority'],
  ['a member of a set that is not initiated yet', { isWritablePrimary: false, isreplicaset: true }, 'majority'],
])('%s gets a write concern that waits for the journal', (_name, hello, w) => {
  expect(writeConcernFor(hello)).toEqual({ w, journal: true })
})
