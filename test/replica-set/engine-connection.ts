import { createConnection } from 'node:net'
import { BSON, type Document } from 'mongodb'
import { bodyOf, editFields, encode, encodeMessage, messagesOf } from './wire.ts'

/** A connection to the engine, which executes one command at a time. */
export interface EngineConnection {
  /** Executes a command and returns the bytes of the answer. Rejects when the engine has ended. */
  run(body: Buffer, sequences?: Buffer[]): Promise<Buffer>
  close(): void
}

export function connectToEngine(socketPath: string, onClose: () => void): EngineConnection {
  const socket = createConnection({ path: socketPath })
  socket.on('error', () => {})
  socket.on('close', onClose)
  const answers = messagesOf(socket)
  let last: Promise<unknown> = Promise.resolve()

  async function exchange(body: Buffer, sequences: Buffer[]) {
    socket.write(encodeMessage(body, { sequences }).message)
    const { value } = await answers.next()
    if (!value) throw new Error('the engine has ended')
    return bodyOf(value)
  }

  return {
    run(body, sequences = []) {
      const answer = last.then(() => exchange(body, sequences))
      last = answer.catch(() => {})
      return answer
    },
    // A running write ends first. A repeat of the write then finds its stored answer.
    close: () => void last.then(() => socket.destroy()),
  }
}

/** Fields of a command that a server without a replica set rejects, or that name another member's time. */
const replicationFields = [
  'lsid',
  'txnNumber',
  'autocommit',
  '$clusterTime',
  'writeConcern',
  'commitQuorum',
  '$readPreference',
]

/** Returns the command as the engine takes it, for the given database of the engine. */
export function forEngine(body: Buffer, command: Document, database: string, isWrite: boolean): Buffer {
  const { level } = command.readConcern ?? {}
  const { w = 'majority', j = false } = command.writeConcern ?? {}
  return editFields(body, replicationFields, {
    $db: database,
    // The engine has no replication, so `majority` would not wait for the journal.
    ...(isWrite && { writeConcern: { w: 1, j: j || w === 'majority' } }),
    ...(command.readConcern && { readConcern: level === 'linearizable' || level === undefined ? {} : { level } }),
  })
}

/** Executes a command of the double itself. Throws if the engine rejects it. */
export async function execute(engine: EngineConnection, database: string, command: Document): Promise<Document> {
  const answer = BSON.deserialize(await engine.run(encode({ ...command, $db: database })))
  if (answer.ok !== 1) throw new Error(`${Object.keys(command)[0]} failed: ${answer.errmsg}`)
  return answer
}
