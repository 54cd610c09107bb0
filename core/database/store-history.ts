import { randomBytes } from 'node:crypto'
import type { Db } from 'mongodb'

/** A restored backup begins a new history, because positions of readers name events that no longer exist. */
interface StoreHistoryDocument {
  _id: 'history'
  /** Empty until the data is restored for the first time. */
  id: string
  /** UUID of the collection of events. `mongorestore` creates the collection anew. */
  events: string
}

const collectionOf = (db: Db) => db.collection<StoreHistoryDocument>('storeHistory')

/** Returns the id of the history. Begins a new one if the collection of events was created anew. */
export async function currentHistory(db: Db): Promise<string> {
  const events = await uuidOfEvents(db)
  for (;;) {
    const known = await collectionOf(db).findOne({ _id: 'history' })
    if (known?.events === events) return known.id
    if (known) await collectionOf(db).updateOne({ _id: 'history', events: known.events }, { $set: newHistory(events) })
    else await collectionOf(db).updateOne({ _id: 'history' }, { $setOnInsert: { id: '', events } }, { upsert: true })
  }
}

/** Begins a new history, so that every position of a reader becomes invalid. Returns its id. */
export async function beginHistory(db: Db): Promise<string> {
  const history = newHistory(await uuidOfEvents(db))
  await collectionOf(db).updateOne({ _id: 'history' }, { $set: history }, { upsert: true })
  return history.id
}

const newHistory = (events: string) => ({ id: randomBytes(5).toString('hex'), events })

async function uuidOfEvents(db: Db) {
  const [events] = await db.listCollections({ name: 'events' }, { nameOnly: false }).toArray()
  const uuid = events?.info?.uuid
  return uuid === undefined ? '' : String(uuid)
}
