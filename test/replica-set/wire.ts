import type { Socket } from 'node:net'
import { BSON, type Document } from 'mongodb'

/** Operation codes of the MongoDB wire protocol. */
const opReply = 1
const opQuery = 2004
const opMsg = 2013
const headerBytes = 16
/** Flags of OP_MSG. */
const hasChecksum = 1
const moreToCome = 2
const exhaustAllowed = 1 << 16

export interface Request {
  id: number
  /** The command without its document sequences, decoded. */
  command: Document
  /** The bytes of `command`. */
  body: Buffer
  /** Sections of kind 1 (document sequences) with their first byte. */
  sequences: Buffer[]
  /** Whether the driver sent the first, legacy form of `hello`. */
  isLegacy: boolean
  /** Whether the driver accepts several answers to this request. */
  isExhaust: boolean
}

/** Yields the messages of a connection. Ends when the connection has closed. */
export async function* messagesOf(socket: Socket): AsyncGenerator<Buffer> {
  let unread: Buffer[] = []
  let length = 0
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    unread.push(chunk)
    length += chunk.length
    while (length >= headerBytes) {
      if (unread.length > 1) unread = [Buffer.concat(unread)]
      const all = unread[0]!
      const end = all.readInt32LE()
      if (length < end) break
      yield all.subarray(0, end)
      unread = [all.subarray(end)]
      length -= end
    }
  }
}

export function parseRequest(message: Buffer): Request {
  const id = message.readInt32LE(4)
  const code = message.readInt32LE(12)
  if (code === opQuery) {
    const body = documentAt(message, message.indexOf(0, headerBytes + 4) + 9)
    return { id, command: BSON.deserialize(body), body, sequences: [], isLegacy: true, isExhaust: false }
  }
  if (code !== opMsg) throw new Error(`unsupported operation code ${code}`)
  const flags = message.readUInt32LE(headerBytes)
  const end = message.length - (flags & hasChecksum ? 4 : 0)
  const sequences: Buffer[] = []
  let body: Buffer = Buffer.alloc(0)
  for (let at = headerBytes + 4; at < end; ) {
    const length = message.readInt32LE(at + 1)
    if (message[at] === 0) body = documentAt(message, at + 1)
    else sequences.push(message.subarray(at, at + 1 + length))
    at += 1 + length
  }
  return {
    id,
    command: BSON.deserialize(body),
    body,
    sequences,
    isLegacy: false,
    isExhaust: (flags & exhaustAllowed) !== 0,
  }
}

const documentAt = (bytes: Buffer, at: number) => bytes.subarray(at, at + bytes.readInt32LE(at))

/** Returns the elements of a list in a command. They are in its body or in document sequences. */
export function listIn({ command, sequences }: Request, name: string): Document[] {
  const inBody = command[name]
  if (Array.isArray(inBody)) return inBody
  return sequences.flatMap((section) => {
    const start = section.indexOf(0, 5) + 1
    if (section.toString('utf8', 5, start - 1) !== name) return []
    const found: Document[] = []
    for (let at = start; at < section.length; at += section.readInt32LE(at))
      found.push(BSON.deserialize(documentAt(section, at)))
    return found
  })
}

let lastId = 0

/** Encodes an OP_MSG. `responseTo` is 0 for a request. */
export function encodeMessage(body: Buffer, { responseTo = 0, sequences = [] as Buffer[], hasMore = false } = {}) {
  lastId = (lastId + 1) & 0x7fffffff
  const head = Buffer.alloc(headerBytes + 5)
  head.writeInt32LE(lastId, 4)
  head.writeInt32LE(responseTo, 8)
  head.writeInt32LE(opMsg, 12)
  head.writeUInt32LE(hasMore ? moreToCome : 0, headerBytes)
  const message = Buffer.concat([head, body, ...sequences])
  message.writeInt32LE(message.length, 0)
  return { id: lastId, message }
}

/** Encodes the answer to the legacy form of `hello`. */
export function encodeLegacyReply(body: Buffer, responseTo: number): Buffer {
  const head = Buffer.alloc(headerBytes + 20)
  head.writeInt32LE(head.length + body.length, 0)
  head.writeInt32LE(responseTo, 8)
  head.writeInt32LE(opReply, 12)
  head.writeInt32LE(1, headerBytes + 16)
  return Buffer.concat([head, body])
}

export const bodyOf = (message: Buffer) => documentAt(message, headerBytes + 5)
export const encode = (document: Document): Buffer => Buffer.from(BSON.serialize(document))

/**
 * Removes fields of a document and adds others at its end. Copies the bytes of all other fields, so
 * that no value changes its type.
 */
export function editFields(body: Buffer, removed: string[], added: Document): Buffer {
  const kept: Buffer[] = []
  for (const [, nameAt, nameLength, at, length] of BSON.onDemand.parseToElements(body)) {
    const name = body.toString('utf8', nameAt, nameAt + nameLength)
    if (!removed.includes(name) && !(name in added)) kept.push(body.subarray(nameAt - 1, at + length))
  }
  const extra = encode(added)
  const edited = Buffer.concat([Buffer.alloc(4), ...kept, extra.subarray(4)])
  edited.writeInt32LE(edited.length, 0)
  return edited
}
