import { type Collection, type Document, type IndexDescriptionInfo, type MongoClient, MongoServerError } from 'mongodb'

const sweepEveryMs = 30_000
const ownDatabases = new Set(['admin', 'local', 'config'])

type ExpiryDeps = {
  client: MongoClient
  now: () => Date
  /** Called with the error of a collection whose sweep failed. The next sweep retries it. */
  onError?: (error: unknown) => void
}

/**
 * Deletes documents that have expired by a TTL index, because the embedded engine has no TTL monitor. `stop`
 * waits for a sweep in progress.
 */
export const createExpiry = ({ client, now, onError }: ExpiryDeps) => {
  let timer: NodeJS.Timeout | undefined
  let sweeping = Promise.resolve(0)
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
        if (!isGone(error)) onError?.(error)
      }
    }
    return deleted
  }

  const schedule = () => {
    if (stopped) return
    timer = setTimeout(() => {
      sweeping = sweep().catch((error) => {
        onError?.(error)
        return 0
      })
      void sweeping.then(schedule)
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

/** Whether the collection was dropped after it was listed. */
const isGone = (error: unknown) => error instanceof MongoServerError && error.codeName === 'NamespaceNotFound'

const sweptCollections = async (client: MongoClient) => {
  const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true })
  const found: Collection[] = []
  for (const { name } of databases) {
    if (ownDatabases.has(name)) continue
    const db = client.db(name)
    for (const info of await db.listCollections<{ name: string; type?: string; options?: Document }>().toArray()) {
      const swept = info.type === 'collection' && !info.options?.capped && !info.name.startsWith('system.')
      if (swept) found.push(db.collection(info.name))
    }
  }
  return found
}

const deleteExpired = async (collection: Collection, at: Date) => {
  let deleted = 0
  for (const index of await collection.indexes()) {
    const filter = expiredFilter(index, at)
    if (filter === undefined) continue
    deleted += (await collection.deleteMany(filter)).deletedCount
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
