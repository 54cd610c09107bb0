import type { Document } from 'mongodb'
import { type EngineConnection, execute } from './engine-connection.ts'
import { failure } from './errors.ts'
import { listIn, type Request } from './wire.ts'

/** What a router of a sharded cluster does before version 8.0. */
export interface ShardRules {
  /** Number of documents that shards have sent to the router for pipelines that they cannot finish. */
  routed: number
  /** Returns the answer to a command of the router itself, or to a command that it refuses. */
  answer(request: Request, engine: EngineConnection): Promise<Document | undefined>
  countRouted(command: Document, engine: EngineConnection): Promise<void>
  /** Makes all collections unsharded, so that a test can shard them. */
  forget(): void
}

export const noShardRules: ShardRules = {
  routed: 0,
  answer: async () => undefined,
  countRouted: async () => {},
  forget() {},
}

const needsKey = 'Query for sharded findAndModify must contain the shard key'
const needsKeyOrId =
  'A single-document write on a sharded collection must contain an exact match on _id or the shard key'

/** `plan` has the shard keys of collections that are sharded from the beginning, in every database. */
export function createShardRules(plan: ReadonlyMap<string, Document>): ShardRules {
  const keys = new Map<string, Document>()
  let planned = plan
  function keyOf(command: Document): Document | undefined {
    const collection = String(Object.values(command)[0])
    return keys.get(`${command.$db}.${collection}`) ?? planned.get(collection)
  }

  function refusedWrite(request: Request, key: Document): string | undefined {
    const { command } = request
    if (command.findAndModify && !pins(command.query, key)) return needsKey
    const writes = [...listIn(request, 'updates'), ...listIn(request, 'deletes')]
    return writes.some(({ q, multi, limit, upsert }) => {
      if (upsert === true) return !pins(q, key)
      const isSingle = limit === 1 || (limit === undefined && multi !== true)
      return isSingle && !pins(q, key) && !pins(q, { _id: 1 })
    })
      ? needsKeyOrId
      : undefined
  }

  async function shard(
    { shardCollection, key, unique = false }: Document,
    engine: EngineConnection,
  ): Promise<Document> {
    const [database = '', ...rest] = String(shardCollection).split('.')
    const collection = rest.join('.')
    if (keys.has(shardCollection)) return { ok: 1 }
    const indexes = await execute(engine, database, { listIndexes: collection }).then(
      ({ cursor }) => cursor.firstBatch as Document[],
      () => [],
    )
    const foreign = indexes.find((index) => index.unique && index.name !== '_id_' && !beginsWith(index.key, key))
    if (foreign) return failure('InvalidOptions', {}, `cannot shard a collection with the unique index ${foreign.name}`)
    const found = indexes.find((index) => beginsWith(index.key, key))
    const name = Object.entries(key).flat().join('_')
    if (!found && name !== '_id_1')
      await execute(engine, database, {
        createIndexes: collection,
        indexes: [{ key, name, ...(unique && { unique }) }],
      })
    keys.set(shardCollection, key)
    return { ok: 1 }
  }

  const rules: ShardRules = {
    routed: 0,

    async answer(request, engine) {
      const { command } = request
      if (command.shardCollection) return shard(command, engine)
      if (command.enableSharding) return { ok: 1 }
      const key = keyOf(command)
      if (!key) return undefined
      const indexes: Document[] = command.createIndexes ? command.indexes : []
      const wrong = indexes.find((index) => index.unique && !beginsWith(index.key, key))
      if (wrong)
        return failure('CannotCreateIndex', {}, `the unique index ${wrong.name} does not begin with the shard key`)
      const refused = refusedWrite(request, key)
      return refused === undefined ? undefined : failure('ShardKeyNotFound', {}, refused)
    },

    forget() {
      keys.clear()
      planned = new Map()
    },

    // A shard ends its part of the pipeline with the first `$sort` and sends all documents to the router.
    async countRouted(command, engine) {
      const key = keyOf(command)
      const [match, sort, next] = command.pipeline as Document[]
      if (!key || !sort?.$sort || next?.$limit || pins(match?.$match ?? {}, key)) return
      const { n } = await execute(engine, command.$db, { count: command.aggregate, query: match?.$match ?? {} })
      rules.routed += n
    },
  }
  return rules
}

/** Whether a filter has exact values for all these fields. */
function pins(filter: Document, fields: Document): boolean {
  const parts = [filter, ...(filter.$and ?? [])]
  return Object.keys(fields).every((field) => parts.some((part) => field in part && isExact(part[field])))
}

const isExact = (value: unknown) =>
  value === null || typeof value !== 'object' || !Object.keys(value).some((key) => key.startsWith('$') && key !== '$eq')

const beginsWith = (index: Document, key: Document) => {
  const fields = Object.entries(index)
  return Object.entries(key).every(([field, kind], at) => fields[at]?.[0] === field && fields[at]?.[1] === kind)
}
