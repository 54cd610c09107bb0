import type { Collection, Document, MongoClient } from 'mongodb'

/** An answer of a retryable write, which a repeat of the write gets again. */
export interface StoredAnswer {
  txnNumber: bigint
  answer: Promise<Buffer>
}

/**
 * The data of one or more members. Members with the same writes share their data. It consists of the
 * engine's databases whose names end with `suffix`.
 */
export interface MemberData {
  suffix: string
  /** The last retryable write of each logical session. Replicated and rolled back like other data. */
  answers: Map<string, StoredAnswer>
  /** UUIDs of the collections before they were copied. Collections keep their UUIDs in a replica set. */
  uuids: Map<string, unknown>
}

export const firstData = (): MemberData => ({ suffix: '', answers: new Map(), uuids: new Map() })

const ownDatabases = ['admin', 'config', 'local']
const suffixPattern = /~\d+$/

/** Returns the engine's name for a database of a member. Cursors of a copy use that name. */
export const engineName = ({ suffix }: MemberData, database: string) =>
  ownDatabases.includes(database) || suffixPattern.test(database) ? database : database + suffix

let copies = 0

/** Copies all databases with their indexes. Nobody may write to them meanwhile. */
export async function copyData(client: MongoClient, from: MemberData): Promise<MemberData> {
  copies += 1
  const to: MemberData = { suffix: `~${copies}`, answers: new Map(from.answers), uuids: new Map(from.uuids) }
  await Promise.all(
    (await databasesOf(client, from)).map(async (name) => {
      const base = name.replace(suffixPattern, '')
      for (const info of await client.db(name).listCollections().toArray()) {
        const key = `${base}.${info.name}`
        to.uuids.set(key, from.uuids.get(key) ?? (info as Document).info.uuid)
        await copyCollection(client.db(name).collection(info.name), base + to.suffix, (info as Document).options ?? {})
      }
    }),
  )
  return to
}

async function copyCollection(from: Collection, database: string, options: Document) {
  const to = await from.db.client.db(database).createCollection(from.collectionName, options)
  const indexes = (await from.indexes()).filter(({ name }) => name !== '_id_')
  if (indexes.length > 0) await to.createIndexes(indexes.map(({ v: _, ...index }) => index) as never)
  if (!options.capped) {
    const into = { db: database, coll: from.collectionName }
    await from.aggregate([{ $merge: { into, whenMatched: 'fail' } }]).toArray()
    return
  }
  // Only inserts one after the other keep the order of a capped collection.
  const documents = await from.find({}, { promoteValues: false }).toArray()
  if (documents.length > 0) await to.insertMany(documents)
}

export async function dropData(client: MongoClient, data: MemberData): Promise<void> {
  for (const name of await databasesOf(client, data)) await client.db(name).dropDatabase()
}

async function databasesOf(client: MongoClient, { suffix }: MemberData): Promise<string[]> {
  const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true })
  const names = databases.map(({ name }) => name).filter((name) => !ownDatabases.includes(name))
  return names.filter((name) => (suffixPattern.exec(name)?.[0] ?? '') === suffix)
}
