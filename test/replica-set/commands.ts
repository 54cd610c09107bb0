import { setTimeout as delay } from 'node:timers/promises'
import { BSON, type Document } from 'mongodb'
import type { EngineConnection } from './engine-connection.ts'
import { execute, forEngine } from './engine-connection.ts'
import { codeOf, type ErrorName, failure, labelOf } from './errors.ts'
import type { Faults } from './faults.ts'
import { baseName, engineName, isOwn } from './member-data.ts'
import { repeatedAnswer } from './retryable-writes.ts'
import { hasMajority, type Member, type Topology, topologyVersion } from './topology.ts'
import { editFields, encode, listIn, type Request } from './wire.ts'

/** What a member needs to execute commands. */
export interface CommandContext {
  topology: Topology
  faults: Faults
  /** Executes writes, but not while the data is being copied. */
  writing<T>(write: () => Promise<T>): Promise<T>
  stepDown(): void
}

const writeNames = new Set(
  'insert update delete findAndModify bulkWrite create createIndexes drop dropIndexes dropDatabase renameCollection collMod'.split(
    ' ',
  ),
)
const readNames = new Set(
  'find aggregate count distinct listCollections listIndexes listDatabases collStats dbStats'.split(' '),
)
const sessionNames = new Set(['endSessions', 'startSession', 'refreshSessions', 'killSessions'])

const isWriteOf = (command: Document, name: string) =>
  writeNames.has(name) ||
  (name === 'aggregate' && (command.pipeline as Document[]).some((stage) => '$out' in stage || '$merge' in stage))

/**
 * Executes a command as this member would. Returns the bytes of the answer, or undefined if the
 * member closes the connection instead.
 */
export async function answer(
  context: CommandContext,
  member: Member,
  engine: EngineConnection,
  request: Request,
): Promise<Buffer | undefined> {
  const { topology, faults } = context
  const { command } = request
  const [name = ''] = Object.keys(command)
  const isWrite = isWriteOf(command, name)
  const fault = faults.next(name, command)
  if (fault?.when === 'before') return fault.error && finish(encode(failure(fault.error, command)), true)
  const refused = refusalOf(member, command, name, isWrite)
  const reply = refused ? encode(refused) : await executed()
  if (fault?.when === 'after') {
    if (!fault.error) return undefined
    return finish(editFields(reply, [], writeConcernError(fault.error, command)), true)
  }
  return finish(reply, refused !== undefined)

  async function executed(): Promise<Buffer> {
    if (sessionNames.has(name)) return encode({ ok: 1 })
    if (name === 'replSetStepDown') {
      context.stepDown()
      return encode({ ok: 1 })
    }
    if (!isWrite) return read(context, member, engine, request, name)
    const since = member.roleChanges
    const run = () => context.writing(() => write(context, member, engine, request, name))
    const written = await repeatedAnswer(member.data.answers, command, run)
    return (await isConfirmed(context, member, since, command))
      ? written
      : editFields(written, [], writeConcernError('InterruptedDueToReplStateChange', command))
  }

  function finish(reply: Buffer, isFailed: boolean): Buffer {
    const time = topology.tick(isWrite)
    const signature = { hash: new BSON.Binary(Buffer.alloc(20)), keyId: 0n }
    return editFields(reply, [], {
      ...(isFailed && { topologyVersion: topologyVersion(member) }),
      operationTime: time,
      $clusterTime: { clusterTime: time, signature },
    })
  }
}

function refusalOf({ role }: Member, command: Document, name: string, isWrite: boolean) {
  if (isWrite && role !== 'primary') return failure('NotWritablePrimary', command)
  const { mode = 'primary' } = command.$readPreference ?? {}
  if (readNames.has(name) && role !== 'primary' && mode === 'primary')
    return failure('NotPrimaryNoSecondaryOk', command)
  return undefined
}

const writeConcernError = (error: ErrorName, command: Document): Document => ({
  writeConcernError: { ...codeOf(error), errmsg: error },
  ...labelOf(error, command),
})

/** Waits until the write has the confirmations that it asks for. Returns false if the member loses its role. */
async function isConfirmed({ topology }: CommandContext, member: Member, since: number, { writeConcern }: Document) {
  const needsMajority = (writeConcern?.w ?? 'majority') === 'majority'
  for (;;) {
    if (member.roleChanges !== since) return false
    if (!needsMajority || hasMajority(topology, member)) return true
    await topology.changed()
  }
}

async function write(
  context: CommandContext,
  member: Member,
  engine: EngineConnection,
  request: Request,
  name: string,
) {
  const { body, command, sequences } = request
  const database = engineName(member.data, command.$db)
  if (!isOwn(database)) context.topology.databases.add(baseName(command.$db))
  const lists = [...listIn(request, 'updates'), ...listIn(request, 'deletes')]
  if (command.txnNumber !== undefined && lists.some(({ multi, limit }) => multi === true || limit === 0))
    return encode(failure('InvalidOptions', command, 'Cannot use retryable writes with limit=0 or multi=true'))
  if (name === 'createIndexes') await buildIndexes(context, engine, database, command)
  const reply = await engine.run(forEngine(body, command, database, true), sequences)
  if (context.faults.msPerDocument > 0 && lists.length > 0)
    await delay(context.faults.msPerDocument * Number(BSON.deserialize(reply).n ?? 0))
  return reply
}

/**
 * Waits as long as an index build on a collection with documents. By default, the build ends when every
 * member with data has ended it, so a stopped member holds it up.
 */
async function buildIndexes(
  { topology, faults }: CommandContext,
  engine: EngineConnection,
  database: string,
  command: Document,
) {
  const { n } = await execute(engine, database, { count: command.createIndexes })
  await delay(faults.msPerDocument * n)
  const needsAll = [undefined, 'votingMembers'].includes(command.commitQuorum)
  if (!needsAll) return
  while (n > 0 && topology.members.some(({ isUp, role }) => !isUp && role !== 'arbiter')) await topology.changed()
}

async function read(
  { topology }: CommandContext,
  member: Member,
  engine: EngineConnection,
  { body, command, sequences }: Request,
  name: string,
): Promise<Buffer> {
  const level = command.readConcern?.level
  const data = level === 'majority' && member.committed ? member.committed : member.data
  const database = engineName(data, command.$db)
  const forward = () => engine.run(forEngine(body, command, database, false), sequences)
  if (level === 'linearizable') while (!hasMajority(topology, member)) await topology.changed()
  if (name === 'getMore' && command.maxTimeMS) return awaitDocuments(member, command, forward)
  const reply = await forward()
  return name === 'listCollections' && data.uuids.size > 0 ? withUuids(reply, command.$db, data.uuids) : reply
}

/** Holds a question for new documents of a capped collection, as a server does. The engine answers at once. */
async function awaitDocuments(member: Member, command: Document, forward: () => Promise<Buffer>): Promise<Buffer> {
  const endsAt = performance.now() + Number(command.maxTimeMS)
  for (;;) {
    // A late member receives no documents.
    const isLate = member.role === 'secondary' && member.isLate
    const [id, ns] = [BigInt(String(command.getMore)), `${command.$db}.${command.collection}`]
    const reply = isLate ? encode({ cursor: { nextBatch: [], id, ns }, ok: 1 }) : await forward()
    const { cursor } = BSON.deserialize(reply, { promoteLongs: false })
    const isOpen = cursor && String(cursor.id) !== '0' && cursor.nextBatch.length === 0
    if (!isOpen || performance.now() > endsAt) return reply
    await delay(10)
  }
}

function withUuids(reply: Buffer, database: string, uuids: Map<string, unknown>): Buffer {
  const document = BSON.deserialize(reply, { promoteValues: false })
  for (const each of document.cursor?.firstBatch ?? []) {
    const known = uuids.get(`${database}.${each.name}`)
    if (known && each.info) each.info.uuid = known
  }
  return encode(document)
}
