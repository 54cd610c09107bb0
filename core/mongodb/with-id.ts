import type { Collection, Document, Filter, FindOptions } from 'mongodb'

export const withId = <D extends { _id: string }>({ _id, ...rest }: D) => ({ ...rest, id: _id })

export const idOnly = { projection: { _id: 1 } } as const
export const idsOf = (found: { _id: string }[]) => found.map(({ _id }) => _id)

export const findIds = async <D extends { _id: string }>(
  collection: Collection<D>,
  filter: Filter<D>,
  options?: FindOptions,
): Promise<string[]> => idsOf(await collection.find<{ _id: string }>(filter, { ...options, ...idOnly }).toArray())

export const hasDocument = async <D extends Document>(collection: Collection<D>, filter: Filter<D>) =>
  (await collection.findOne(filter, idOnly)) !== null
