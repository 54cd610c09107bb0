import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { Nudge, PassedEnds } from '../../core/wakeups/wakeup-store.ts'

export type SocketNudge = ReturnType<typeof createSocketNudge>

/** Creates a nudge for a database with a unix socket, whose cores run on this machine. Undefined for others. */
export function nudgeOfDatabase(uri: string, name: string) {
  const socketPath = URL.canParse(uri) ? decodeURIComponent(new URL(uri).host) : ''
  if (!socketPath.endsWith('.sock')) return undefined
  const database = createHash('sha256').update(name).digest('hex').slice(0, 8)
  return createSocketNudge(join(dirname(socketPath), nudgeFolder, database))
}

/** Folder beside the socket of the engine. */
const nudgeFolder = 'nudges'

/** Bytes before each message, which contain its length. */
const headerBytes = 4
/** A process with more unread bytes gets no further messages, because it does not read. */
const maxUnreadBytes = 1_000_000
/** Maximum wait if no process can reach this one. */
const unreachableMs = 10

/**
 * Creates a nudge that listens on a socket in the folder, which only its owner can use, and connects to the
 * processes there. If it cannot listen, as with a long path, each wait ends after a few milliseconds.
 */
export function createSocketNudge(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const name = `${process.pid}.${randomBytes(2).toString('hex')}`
  const path = join(folder, name)
  const sockets = new Set<Socket>()
  let received = 0
  let waiting: (() => void)[] = []
  let handler: (ends: PassedEnds) => void = () => {}
  let isListening = true
  let closed = false

  function wake() {
    received += 1
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }

  function add(socket: Socket) {
    sockets.add(socket)
    socket.unref()
    let unread = Buffer.alloc(0)
    socket.on('data', (data) => {
      unread = unread.length === 0 ? data : Buffer.concat([unread, data])
      for (;;) {
        const end = headerBytes + (unread.length < headerBytes ? 0 : unread.readUInt32LE())
        if (unread.length < end) return
        const ends: PassedEnds | undefined = deserialize(unread.subarray(headerBytes, end))
        unread = unread.subarray(end)
        if (ends) handler(ends)
        else wake()
      }
    })
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  }

  function connectToOthers() {
    for (const other of readdirSync(folder)) {
      if (other === name || closed) continue
      const socket = connect(join(folder, other))
      // The socket of a dead process refuses connections.
      socket.on('error', ({ code }: NodeJS.ErrnoException) => {
        if (code === 'ECONNREFUSED') rmSync(join(folder, other), { force: true })
      })
      add(socket)
    }
  }

  function send(message: PassedEnds | undefined) {
    if (closed || sockets.size === 0) return
    const body = serialize(message)
    const header = Buffer.alloc(headerBytes)
    header.writeUInt32LE(body.length)
    const bytes = Buffer.concat([header, body])
    for (const socket of sockets) if (socket.writableLength < maxUnreadBytes) socket.write(bytes)
  }

  // Each process listens before it connects, so of two that start together at least one finds the other.
  const server = createServer(add)
    .listen(path, () => {
      chmodSync(path, 0o600)
      connectToOthers()
    })
    .unref()
  server.on('error', () => {
    isListening = false
  })

  return {
    pass: send,

    onPassed(receive: typeof handler) {
      handler = receive
    },

    announce: () => send(undefined),

    count: () => received,

    after(known: number, atMostMs: number) {
      if (received !== known || closed) return Promise.resolve()
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, isListening ? atMostMs : Math.min(atMostMs, unreachableMs))
      waiting.push(resolve)
      return promise.finally(() => {
        clearTimeout(timer)
        waiting = waiting.filter((one) => one !== resolve)
      })
    },

    /** The process that creates a nudge must close it. */
    close() {
      if (closed) return
      closed = true
      server.close()
      for (const socket of sockets) socket.destroy()
      rmSync(path, { force: true })
      wake()
    },
  } satisfies Nudge & Record<string, unknown>
}
