import { MongoClient } from 'mongodb'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { createConversationStore } from '../conversations/conversation-store.ts'
import type { LeadSubscriptionDocument } from '../destinations/lead-subscription-store.ts'
import { createKeyring, parseSecretKeys } from '../keys/keyring.ts'
import { createSecretBox } from '../keys/secret-box.ts'
import { openDatabase } from './database.ts'
import { createMigrationLock } from './migration-lock.ts'
import { isReady, migrate, schemaStatus } from './schema.ts'

const { uri, name } = testDatabase({ isNew: true })
const client = new MongoClient(uri)
const db = client.db(name)
afterAll(() => client.close())
beforeEach(() => db.dropDatabase())

const open = (migrates: boolean) => openDatabase({ uri, name, timeoutMs: 5000, migrates })
const record = (_id: string) => ({ _id, inputHash: 'x', result: { sessionId: `ses_${_id}` } }) as never

describe('a database', () => {
  it('is not ready before its first migration, and is ready afterwards', async () => {
    const before = await schemaStatus(db)
    expect(isReady(before)).toBe(false)
    expect(before.missing).toContain('events.by_sequence')
    expect(before.toExpand.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6])
    expect((await db.listCollections().toArray()).length).toBe(0)
    expect(isReady(await migrate(db))).toBe(true)
    expect(isReady(await schemaStatus(db))).toBe(true)
    const [wakeups] = await db.listCollections({ name: 'wakeups' }).toArray()
    expect((wakeups as { options?: object }).options).toMatchObject({ capped: true })
  })

  it('is rejected if it is outdated and the core may not migrate it, and the error names the command to run', async () => {
    await expect(open(false)).rejects.toThrow(/run npm run migrate: wakeups, events\.by_sequence.*migration 1 /)
    await migrate(db)
    await (await open(false)).close()
    await db.collection('events').dropIndex('by_operation')
    await expect(open(false)).rejects.toThrow(
      'the database is behind this version, run npm run migrate: events.by_operation',
    )
    await (await open(true)).close()
    await (await open(false)).close()
  })
})

describe('a migration', () => {
  it('converts existing records in its expand step, and records that were written later in its contract step', async () => {
    await db.collection('idempotency').insertOne(record('before'))
    expect((await migrate(db)).toContract.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6])
    await db.collection('idempotency').insertOne(record('beside'))
    const sessionIds = async () =>
      Object.fromEntries(
        (await db.collection('idempotency').find().toArray()).map((each) => [each._id, each.sessionIds]),
      )
    expect(await sessionIds()).toEqual({ before: ['ses_before'], beside: undefined })
    expect((await migrate(db, { contract: true })).toContract).toEqual([])
    expect(await sessionIds()).toEqual({ before: ['ses_before'], beside: ['ses_beside'] })
  })

  it('keeps the last session and the status of a conversation readable when it converts their fields', async () => {
    const _id = 'cnv_migrated' as never
    const stored = { workspaceId: 'ws_1', lastSequence: 4, lastSessionId: 'ses_1', closedSequence: 5, status: 'closed' }
    await db.collection('conversations').insertOne({ _id, ...stored })
    const conversations = createConversationStore({ conversations: db.collection('conversations'), history: '' })
    for (const contract of [false, true]) {
      await migrate(db, { contract })
      expect(await conversations.find(['cnv_migrated'])).toMatchObject([{ lastSessionId: 'ses_1', status: 'closed' }])
    }
    expect(Object.keys((await db.collection('conversations').findOne({ _id }))!)).not.toContain('status')
  })

  itLong('places the conversations of the previous version in the queues, also those changed meanwhile', async () => {
    const add = async (name: string, kind: string, closedSequence?: number) => {
      const conversationId = `cnv_${name}` as never
      const stored = { workspaceId: 'ws_1', lastSequence: 4, lastMessageAt: new Date(9), closedSequence }
      await db.collection('conversations').insertOne({ _id: conversationId, ...stored })
      await db.collection('events').insertOne({ conversationId, sequence: 4, message: { author: { kind } } })
    }
    const conversations = createConversationStore({ conversations: db.collection('conversations'), history: '' })
    const waiting = async () => {
      const found = db.collection('conversations').find({ 'queue.waitingSince': { $exists: true } })
      return (await found.sort({ _id: 1 }).toArray()).map(({ _id, queue }) => [
        String(_id),
        queue.waitingSince.getTime(),
      ])
    }
    await add('asked', 'visitor')
    await add('answered', 'agent')
    await add('closed', 'visitor', 5)
    await migrate(db)
    expect(await waiting()).toEqual([['cnv_asked', 9]])
    expect(await conversations.count('ws_1', 'Ada')).toEqual({ unanswered: 1, mine: 0, unassigned: 2, open: 2 })
    await add('later', 'visitor')
    await migrate(db, { contract: true })
    expect(await waiting()).toEqual([
      ['cnv_asked', 9],
      ['cnv_later', 9],
    ])
  })

  itLong(
    'contracts no database unasked: not an empty one, one half migrated, or one that four processes migrate',
    async () => {
      const pending = [1, 2, 3, 4, 5, 6]
      const pendingOf = async () => (await schemaStatus(db)).toContract.map(({ number }) => number)
      await migrate(db)
      expect(await pendingOf()).toEqual(pending)
      await (await open(true)).close()
      expect(await pendingOf()).toEqual(pending)
      await db.dropDatabase()
      await db.createCollection('wakeups')
      await db.collection<{ _id: number }>('migrations').insertOne({ _id: 1 })
      await Promise.all(Array.from({ length: 4 }, () => migrate(db)))
      expect(await pendingOf()).toEqual(pending)
      expect((await migrate(db, { contract: true })).toContract).toEqual([])
    },
  )

  it('keeps the indexes that cores of the previous version name in their queries until its contract step', async () => {
    const deliveries = db.collection<{ _id: string }>('deliveries')
    const namesOf = async () => (await deliveries.indexes()).map(({ name }) => name)
    await deliveries.createIndex({ workspaceId: 1, createdAt: -1, _id: -1 }, { name: 'by_workspace' })
    await deliveries.insertOne({ _id: 'dlv_old' })
    await migrate(db)
    expect(await namesOf()).toContain('by_workspace')
    await migrate(db, { contract: true })
    expect(await namesOf()).not.toContain('by_workspace')
    expect(await namesOf()).toContain('by_workspace_status')
  })

  describe('of the URLs of destinations', () => {
    const subscriptions = () => db.collection<{ _id: string }>('leadSubscriptions')
    const plain = { destinationUrl: 'https://crm.example:8443/hooks?key=PLAIN-SECRET' }
    const sealer = createSecretBox(createKeyring(parseSecretKeys(`k1:${Buffer.alloc(32, 7).toString('base64')}`)))

    it('leaves them to cores of the previous version in its expand step, and encrypts them in its contract step', async () => {
      const newer = { ...plain, destination: { sealed: 'of an older URL', origin: 'https://old.example' } }
      await subscriptions().insertMany([{ _id: 'old', ...plain }, { _id: 'both', ...newer } as never])
      await migrate(db)
      expect(await subscriptions().countDocuments(plain)).toBe(2)
      await migrate(db, { contract: true, sealer })
      const found = (await subscriptions().find().toArray()) as unknown as LeadSubscriptionDocument[]
      expect(JSON.stringify(found)).not.toContain('PLAIN-SECRET')
      for (const { destination } of found) {
        expect(destination!.origin).toBe('https://crm.example:8443')
        expect(sealer.open(destination!.sealed)).toBe(plain.destinationUrl)
      }
    })

    it('names the missing SECRET_KEYS and stays pending if it must encrypt without them', async () => {
      await subscriptions().insertOne({ _id: 'old', ...plain } as never)
      await expect(migrate(db, { contract: true })).rejects.toThrow('SECRET_KEYS is missing')
      expect((await schemaStatus(db)).toContract.map(({ number }) => number)).toEqual([3, 4, 5, 6])
      expect((await migrate(db, { contract: true, sealer })).toContract).toEqual([])
    })
  })

  itLong('runs once when four processes start it at the same time', async () => {
    await Promise.all(Array.from({ length: 4 }, () => migrate(db)))
    const first = await db.collection('migrations').find().toArray()
    await migrate(db)
    expect(first.length).toBe(6)
    expect(await db.collection('migrations').find().toArray()).toEqual(first)
    expect(await db.collection('locks').countDocuments()).toBe(0)
  })
})

describe('the migration lock', () => {
  it('makes concurrent processes run their work one after the other', async () => {
    let running = 0
    let most = 0
    const work = async () => {
      most = Math.max(most, ++running)
      await db.collection('work').insertOne({})
      running -= 1
    }
    await Promise.all(Array.from({ length: 5 }, () => createMigrationLock(db, Date.now).holding(work)))
    expect([most, await db.collection('work').countDocuments()]).toEqual([1, 5])
  })

  it("is taken over when its owner's lease has expired, and `check` then fails for the former owner", async () => {
    let ahead = 0
    const now = () => Date.now() + ahead
    const dead = createMigrationLock(db, now)
    let late: Promise<void> = Promise.resolve()
    const hanging = Promise.withResolvers<void>()
    let check: (() => Promise<void>) | undefined
    const first = dead.holding((given) => {
      check = given
      return hanging.promise
    })
    await expect.poll(() => db.collection('locks').countDocuments()).toBe(1)
    ahead = 16_000
    await createMigrationLock(db, now).holding(async () => {
      late = check!()
      await late.catch(() => {})
    })
    await expect(late).rejects.toThrow('another process has taken over the work')
    hanging.resolve()
    await first
  })
})
