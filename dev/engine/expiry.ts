import { type Collection, type Document, type IndexDescriptionInfo, type MongoClient, MongoServerError } from 'mongodb'

const sweepEveryMs = 30_000
const ownDatabases = new Set(['admin', 'local', 'config'])

/**
 * Deletes documents that have expired by a TTL index, because the embedded engine has no TTL monitor. `stop`
 * waits for a sweep in progress. `onError` gets the error of a collection whose sweep failed; the next sweep retries it.
 */
export const createExpiry = (client: MongoClient, now: () => Date, onError: (error: unknown) => void) => {
  let timer: NodeJS.Timeout | undefined
  let sweeping: Promise<unknown> | undefined
  let stopped = false

  /** Resolves to the number of deleted documents. */
  const sweep = async () => {
    const at = now()
    let deleted = 0
    for (const collection of await sweptCollections(client)) {
      if (stopped) break
      try {
        deleted += await deleteExpired(collection, at)
      } catch (error) {
        // The collection was dropped after it was listed.
        const isGone = error instanceof MongoServerError && error.codeName === 'NamespaceNotFound'
        if (!isGone) onError(error)
      }
    }
    return deleted
  }

  const schedule = () => {
    if (stopped) return
    timer = setTimeout(() => {
      sweeping = sweep().catch(onError).then(schedule)
    }, sweepEveryMs)
  }
  schedule()

  const stop = async () => {
    stopped = true
    clearTimeout(timer)
    await sweeping
  }

  return { sweep, stop }
}

const sweptCollections = async (client: MongoClient) => {
  const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true })
  const found: Collection[] = []
  for (const { name } of databases) {
    if (ownDatabases.has(name)) continue
    const db = client.db(name)
    for (const { type, name, options } of await db.listCollections({}, { nameOnly: false }).toArray())
      if (type === 'collection' && !options?.capped && !name.startsWith('system.')) found.push(db.collection(name))
  }
  return found
}

const deleteExpired = async (collection: Collection, at: Date) => {
  let deleted = 0
  for (const index of await collection.indexes()) {
    const filter = expiredFilter(index, at)
    if (filter) deleted += (await collection.deleteMany(filter)).deletedCount
  }
  return deleted
}

/** Matches what a TTL monitor would delete: `$lte` with a date matches only dates and arrays that contain one. */
const expiredFilter = (index: IndexDescriptionInfo, at: Date): Document | undefined => {
  const seconds = Number(index.expireAfterSeconds ?? Number.NaN)
  const [field, ...others] = Object.keys(index.key)
  if (!Number.isFinite(seconds) || field === undefined || others.length > 0 || field === '_id') return undefined
  const expired = { [field]: { $lte: new Date(at.getTime() - seconds * 1000) } }
  return index.partialFilterExpression ? { $and: [index.partialFilterExpression, expired] } : expired
}
