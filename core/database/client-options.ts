import {
  type Document,
  MongoClient,
  type MongoClientOptions,
  MongoServerError,
  type WriteConcernSettings,
} from 'mongodb'
import { SettingError } from '../../platform/settings/settings.ts'

/** Options of `MONGODB_URI` on which the service relies, with the values that it accepts. */
const fixed: Record<string, (value: string, isDirect: boolean) => boolean> = {
  readpreference: (value) => value === 'primary',
  readpreferencetags: () => false,
  maxstalenessseconds: (value) => value === '-1',
  readconcernlevel: (value) => value === 'local' || value === 'majority',
  // A single server has no majority; the service waits for its journal instead.
  w: (value, isDirect) => value === 'majority' || (value === '1' && isDirect),
  wtimeoutms: (value) => value === '0',
  journal: (value) => value === 'true',
  retrywrites: (value) => value === 'true',
  maxpoolsize: (value) => Number(value) === 0 || Number(value) >= minPoolSize,
}
/** Minimum size of the pool, because readers of wake-ups keep connections busy. */
const minPoolSize = 8

const poolReason = `must be ${minPoolSize} or more, or 0 for no limit`
const otherReason = 'is not allowed: the service reads from the primary, and a majority confirms each write'

/**
 * Creates a client that is not connected yet. Options of the URI replace the defaults, except those in `fixed`.
 * `timeoutMs` limits finding a server and each connection. Errors: `SettingError`; its message never has the URI,
 * because this contains a password.
 */
export function createMongoClient(
  uri: string,
  { timeoutMs, ...options }: MongoClientOptions & { timeoutMs: number },
): MongoClient {
  const times = { serverSelectionTimeoutMS: timeoutMs, connectTimeoutMS: timeoutMs }
  const defaults = { readPreference: 'primary', ...times, ...options }
  const inUri = new URLSearchParams(uri.slice(uri.indexOf('?') + 1 || uri.length))
  const given = [...inUri].map(([name, value]) => ({ name, key: name.toLowerCase(), value }))
  const isDirect = given.some(({ name, value }) => name === 'directConnection' && value === 'true')
  for (const { name, key, value } of given)
    if (fixed[key]?.(value.toLowerCase(), isDirect) === false)
      throw new SettingError(`MONGODB_URI: the option ${name} ${key === 'maxpoolsize' ? poolReason : otherReason}`)
  const kept = Object.entries(defaults).filter(([name]) => given.every(({ key }) => key !== name.toLowerCase()))
  try {
    return restingClient(new MongoClient(uri, Object.fromEntries(kept)))
  } catch (error) {
    // The constructor only reads the URI, so every error is one of the URI.
    throw new SettingError(`MONGODB_URI: ${(error as Error).message.split('\n')[0]}`)
  }
}

/** Lets the driver check its pool of connections each 6 s. It would do so each 100 ms, and has no public option. */
export function restingClient(client: MongoClient): MongoClient {
  if (!client.options.minPoolSize) Object.assign(client.options, { minPoolSizeCheckFrequencyMS: 6_000 })
  return client
}

/** Connects a client and runs `use`. Closes the client if either fails. Errors: those of `connectFault` and `use`. */
export async function connected<T>(
  client: MongoClient,
  use: (writeConcern: WriteConcernSettings) => T | Promise<T>,
): Promise<T> {
  try {
    await client.connect()
    return await use(writeConcernFor(await client.db('admin').command({ hello: 1 })))
  } catch (error) {
    await client.close()
    throw connectFault(error)
  }
}

/**
 * Returns a `SettingError` for an unreadable certificate, a rejected user or a missing permission. Returns other
 * errors unchanged.
 */
function connectFault(error: unknown) {
  const { code, path, message = '' } = error as { code?: unknown; path?: string; message?: string }
  // The driver reads the files that the URI names when it connects.
  if (path !== undefined) return new SettingError(`MONGODB_URI: the file ${path} cannot be read (${code})`)
  if (!(error instanceof MongoServerError)) return error
  if (code === 18 || code === 8000)
    return new SettingError(`MONGODB_URI: the database refuses the user or the password (${message})`)
  if (code === 13) return new SettingError(`MONGODB_URI: the user may not use this database (${message.slice(0, 120)})`)
  return error
}

/**
 * Returns the write concern under which acknowledged writes survive the loss of any process, for a server with this
 * answer to the command `hello`: journaled, and on a replica set confirmed by the majority. Without a replica set,
 * `majority` would acknowledge writes that are only in memory, because only the replication code waits for the
 * journal (`waitForWriteConcern` in the server's `write_concern.cpp`). Clients of a server that becomes a replica
 * set must be restarted.
 */
export function writeConcernFor(hello: Document): WriteConcernSettings {
  const isSingle = hello.setName === undefined && hello.isreplicaset !== true
  return isSingle ? { w: 1, journal: true } : { w: 'majority', journal: true }
}
