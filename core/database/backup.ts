import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { BSON, type Db, type Document, type MongoClient } from 'mongodb'
import { connected, createMongoClient } from './client-options.ts'
import { reportOf } from './restore-report.ts'
import { migrate } from './schema.ts'
import { beginHistory } from './store-history.ts'

/**
 * A backup is a gzip stream of BSON documents: `Head`, an `Entry` for each document, `Tail`. A passphrase
 * encrypts it (AES-256-GCM, scrypt).
 */
interface Head {
  backup: 1
  at: Date
  /** Secrets of the data folder. Without them, the sealed secrets in the database are lost. */
  secrets?: string
}
interface Entry {
  collection: string
  document: Document
}
interface Tail {
  counts: Record<string, number>
}

export interface BackupContent extends Tail {
  at: Date
  secrets?: string
}

interface BackupFile {
  path: string
  /** Encrypts the file. Empty for a plain file. */
  passphrase: string
}

/** Collections whose data is only of the moment. Migrations create the collections. */
const notKept = ['wakeups', 'typing', 'operatorPresence']
/** If there is no snapshot, these are read last, in this order. So each document refers only to existing ones. */
const sources = 'events conversations sessions visitors installations connections workspaces keys'.split(' ')
const groupMaxDocuments = 500
const groupMaxBytes = 4 * 1024 * 1024
/** Keeps the types of numbers, which a restore must write unchanged. */
const exact = { promoteValues: false, promoteBuffers: false, bsonRegExp: true } as const
const magic = Buffer.from('service-backup-1')
const saltBytes = 16
const nonceBytes = 12
const tagBytes = 16
const headBytes = magic.length + saltBytes + nonceBytes

/**
 * Writes a database into a file that only its owner can read. The file appears when all of it is on the disk.
 * The service may run: a replica set, also of one member, is read as it was at one moment.
 */
async function writeBackup(
  client: MongoClient,
  db: Db,
  file: BackupFile & { secrets?: string },
): Promise<BackupContent> {
  const { path, passphrase, secrets } = file
  const at = new Date()
  const counts: Record<string, number> = {}
  const { setName } = await client.db('admin').command({ hello: 1 })
  const session = setName === undefined ? undefined : client.startSession({ snapshot: true })

  async function* records(): AsyncGenerator<Uint8Array> {
    yield BSON.serialize({ backup: 1, at, secrets } satisfies Head, { ignoreUndefined: true })
    for (const collection of await collectionsIn(db)) {
      counts[collection] = 0
      for await (const document of db.collection(collection).find({}, { ...exact, session })) {
        yield BSON.serialize({ collection, document } satisfies Entry)
        counts[collection] += 1
      }
    }
    yield BSON.serialize({ counts } satisfies Tail)
  }

  const draft = `${path}.draft`
  try {
    await rm(draft, { force: true })
    const target = createWriteStream(draft, { mode: 0o600, flags: 'wx', flush: true })
    await pipeline(Readable.from(records()), createGzip(), encryption(passphrase), target)
    await rename(draft, path)
  } finally {
    await session?.endSession()
    await rm(draft, { force: true })
  }
  return { at, counts, ...(secrets !== undefined && { secrets }) }
}

class PassphraseError extends Error {}

/**
 * Reads a whole backup, and passes its documents to `use`. Rejects if the file is damaged or cut, or if the
 * passphrase is wrong. `use` may by then have got documents.
 */
export async function readBackup(
  { path, passphrase }: BackupFile,
  use: (collection: string, documents: Document[]) => Promise<unknown> = async () => {},
): Promise<BackupContent> {
  const counts: Record<string, number> = {}
  let head: Head | undefined
  let tail: Tail | undefined
  let refused: unknown
  async function take(records: AsyncIterable<Buffer>) {
    let group: { collection: string; documents: Document[]; bytes: number } | undefined
    const flush = async () => {
      if (group)
        await use(group.collection, group.documents).catch((error: unknown) => {
          refused = error
          throw error
        })
    }
    for await (const bytes of records) {
      const record = BSON.deserialize(bytes, exact)
      if (tail || (head === undefined) !== 'backup' in record) throw new Error(`${path} is no backup.`)
      if ('backup' in record) head = BSON.deserialize(bytes) as Head
      else if ('counts' in record) tail = BSON.deserialize(bytes) as Tail
      else {
        const { collection, document } = record as Entry
        counts[collection] = (counts[collection] ?? 0) + 1
        const isFull = group && (group.documents.length >= groupMaxDocuments || group.bytes >= groupMaxBytes)
        if (group?.collection !== collection || isFull) {
          await flush()
          group = { collection, documents: [], bytes: 0 }
        }
        group!.documents.push(document)
        group!.bytes += bytes.length
      }
    }
    await flush()
  }
  try {
    const [source, transform] = await decryption(path, passphrase)
    await pipeline(source, transform, createGunzip(), split, take)
  } catch (error) {
    if (error === refused) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new Error(`There is no file ${path}.`)
    if (error instanceof PassphraseError) throw error
    throw new Error(`${path} is damaged or no backup${passphrase && ', or the passphrase is another one'}.`, {
      cause: error,
    })
  }
  if (!head || !tail) throw new Error(`${path} is cut off.`)
  const expected = Object.entries(tail.counts).filter(([, count]) => count > 0)
  if (expected.length !== Object.keys(counts).length || expected.some(([name, count]) => counts[name] !== count))
    throw new Error(`${path} has other numbers of documents than were written.`)
  return { at: head.at, counts: tail.counts, ...(head.secrets !== undefined && { secrets: head.secrets }) }
}

/** Writes a backup into an empty database, and compares the numbers of documents. Makes no indexes. */
async function restoreInto(db: Db, file: BackupFile) {
  const content = await readBackup(file, (collection, documents) =>
    db.collection(collection).insertMany(documents, { ordered: false }),
  )
  for (const [name, count] of Object.entries(content.counts)) {
    const found = await db.collection(name).countDocuments()
    if (found !== count) throw new Error(`${name} has ${found} of ${count} documents.`)
  }
  return content
}

/** What has last succeeded. A drill is a restore with which a core has started. */
type BackupKind = 'backup' | 'drill'
const recordsIn = (db: Db) => db.collection<{ _id: BackupKind; at: Date }>('backups')

export async function lastBackups(db: Db): Promise<Partial<Record<BackupKind, Date>>> {
  return Object.fromEntries((await recordsIn(db).find().toArray()).map(({ _id, at }) => [_id, at]))
}

/** Opens the databases of a server. Calls on this connection have no timeout. */
export async function openBackups({ uri, name, timeoutMs }: { uri: string; name: string; timeoutMs: number }) {
  const client = createMongoClient(uri, { appName: 'service-backup', timeoutMs })
  return connected(client, (writeConcern) => {
    const database = (of = name) => client.db(of, { writeConcern })
    return {
      write: (file: BackupFile & { secrets?: string }) => writeBackup(client, database(), file),
      isEmpty: async () => (await database().listCollections({}, { nameOnly: true }).toArray()).length === 0,
      /** Restores into an empty database, brings it up to date, and begins a new history. */
      async restore(file: BackupFile, into = name) {
        const content = await restoreInto(database(into), file)
        await migrate(database(into), { contract: false })
        await beginHistory(database(into))
        return content
      },
      /** Says what a restore undoes. `restored` and `replaced` name databases. */
      report: ({ restored, replaced, ...facts }: { file: string; at: Date; restored: string; replaced?: string }) =>
        reportOf({
          ...facts,
          restored: database(restored),
          replaced: replaced === undefined ? undefined : database(replaced),
        }),
      drop: (of = name) => database(of).dropDatabase(),
      record: (kind: BackupKind) =>
        recordsIn(database()).updateOne({ _id: kind }, { $set: { at: new Date() } }, { upsert: true }),
      close: () => client.close(),
    }
  })
}

async function collectionsIn(db: Db) {
  const found = await db.listCollections({}, { nameOnly: true }).toArray()
  const names = found.map(({ name }) => name).filter((name) => !notKept.includes(name) && !name.startsWith('system.'))
  return [...names.filter((name) => !sources.includes(name)).sort(), ...sources.filter((name) => names.includes(name))]
}

/** Splits bytes into BSON documents. Each begins with its length. */
async function* split(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of bytes) {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
      const length = rest.readInt32LE(0)
      if (length < 5) throw new Error('a document has no length')
      yield rest.subarray(0, length)
      rest = rest.subarray(length)
    }
  }
  if (rest.length > 0) throw new Error('the last document is cut off')
}

const keyOf = (passphrase: string, salt: Buffer) => scryptSync(passphrase, salt, 32)

function encryption(passphrase: string) {
  return async function* (bytes: AsyncIterable<Buffer>) {
    if (passphrase === '') return yield* bytes
    const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)]
    const cipher = createCipheriv('aes-256-gcm', keyOf(passphrase, salt), nonce)
    yield Buffer.concat([magic, salt, nonce])
    for await (const chunk of bytes) yield cipher.update(chunk)
    yield cipher.final()
    yield cipher.getAuthTag()
  }
}

/** Returns the bytes of a file and what decrypts them. The file says whether it is encrypted. */
async function decryption(path: string, passphrase: string) {
  const file = await open(path)
  const head = Buffer.alloc(headBytes)
  await file.read(head, 0, headBytes, 0)
  const { size } = await file.stat()
  const read = async (length: number, from: number) => (await file.read(Buffer.alloc(length), 0, length, from)).buffer
  const isEncrypted = head.subarray(0, magic.length).equals(magic) && size > headBytes + tagBytes
  const tag = isEncrypted ? await read(tagBytes, size - tagBytes) : undefined
  await file.close()
  if (!tag) return [createReadStream(path), new PassThrough()] as const
  if (passphrase === '') throw new PassphraseError(`${path} is encrypted: set BACKUP_PASSPHRASE.`)
  const salt = head.subarray(magic.length, magic.length + saltBytes)
  const decipher = createDecipheriv('aes-256-gcm', keyOf(passphrase, salt), head.subarray(-nonceBytes)).setAuthTag(tag)
  return [createReadStream(path, { start: headBytes, end: size - tagBytes - 1 }), decipher] as const
}
