import type { Collection, Document, MongoClient } from 'mongodb'

/** The answer to a retryable write. A repeat of the write gets the same answer. */
export interface StoredAnswer {
  txnNumber: bigint
  answer: Promise<Buffer>
}

/**
 * The data of one or more members. Members with the same writes share it. The data is in those
 * databases of the engine whose names end with `suffix`.
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

export const isOwn = (database: string) => ownDatabases.includes(database)

/** Returns the name of a database without the suffix of a copy. */
export const baseName = (database: string) => database.replace(suffixPattern, '')

/** Returns the engine's name for a database of a member. Cursors of a copy use that name. */
export const engineName = ({ suffix }: MemberData, database: string) =>
  isOwn(database) || suffixPattern.test(database) ? database : database + suffix

let copies = 0

/** Copies these databases with their indexes. Nobody may write to them meanwhile. */
export async function copyData(client: MongoClient, names: ReadonlySet<string>, from: MemberData): Promise<MemberData> {
  copies += 1
  const to: MemberData = { suffix: `~${copies}`, answers: new Map(from.answers), uuids: new Map(from.uuids) }
  await Promise.all(
    [...names].map(async (base) => {
      const name = base + from.suffix
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

export async function dropData(client: MongoClient, names: ReadonlySet<string>, data: MemberData): Promise<void> {
  for (const name of names) await client.db(name + data.suffix).dropDatabase()
}
