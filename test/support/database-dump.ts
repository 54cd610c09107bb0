import type { CollectionInfo, CreateCollectionOptions, Db, Document, IndexDescriptionInfo } from 'mongodb'

interface DumpedCollection {
  name: string
  options: CreateCollectionOptions
  indexes: IndexDescriptionInfo[]
  documents: Document[]
}

/** The content of a database, as `mongodump` writes it. */
export interface DatabaseDump {
  collections: DumpedCollection[]
}

/** Reads all collections. Nothing may write to the database meanwhile. */
export async function dumpDatabase(db: Db): Promise<DatabaseDump> {
  const found = (await db.listCollections().toArray()) as CollectionInfo[]
  const collections = found.map(async ({ name, options = {} }) => ({
    name,
    options: options as CreateCollectionOptions,
    indexes: await db.collection(name).indexes(),
    documents: await db.collection(name).find().toArray(),
  }))
  return { collections: await Promise.all(collections) }
}

/**
 * Restores a dump as `mongorestore --drop` does: drops each collection of the dump and creates it
 * anew. Collections that are not in the dump stay.
 */
export async function restoreDump(db: Db, { collections }: DatabaseDump): Promise<void> {
  for (const collection of collections) await recreate(db, collection)
}

/**
 * Puts a dump back into the same collections, as a snapshot of the data files does: the collections
 * keep their UUIDs, except for capped ones.
 */
export async function restoreSnapshot(db: Db, { collections }: DatabaseDump): Promise<void> {
  for (const collection of collections) {
    const { name, options, documents } = collection
    if (options.capped) await recreate(db, collection)
    else await db.collection(name).deleteMany({})
    if (!options.capped && documents.length > 0) await db.collection(name).insertMany(documents)
  }
}

async function recreate(db: Db, { name, options, indexes, documents }: DumpedCollection): Promise<void> {
  await db.dropCollection(name)
  await db.createCollection(name, options)
  const wanted = indexes.filter((index) => index.name !== '_id_').map(({ v: _, ...index }) => index)
  if (wanted.length > 0) await db.collection(name).createIndexes(wanted)
  if (documents.length > 0) await db.collection(name).insertMany(documents)
}
