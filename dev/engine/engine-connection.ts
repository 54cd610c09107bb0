import { once } from 'node:events'
import { connect } from 'node:net'
import { BSON } from 'mongodb'

const headerBytes = 16
const opMsg = 2013

/**
 * Connects to an engine and waits for the reply to a ping, because a process paused by SIGSTOP still accepts
 * connections. Returns undefined if nobody listens or no reply came within `timeoutMs`.
 */
export const openEngineConnection = async (socketPath: string, timeoutMs: number, signal: AbortSignal) => {
  const socket = connect(socketPath)
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.on('error', () => {})
  socket.setTimeout(timeoutMs, () => socket.destroy())
  const abandon = () => socket.destroy()
  signal.addEventListener('abort', abandon, { once: true })
  socket.write(ping())
  const isData = once(socket, 'data').then(
    () => true,
    () => false,
  )
  const answered = await Promise.race([isData, closed.then(() => false)])
  signal.removeEventListener('abort', abandon)
  socket.setTimeout(0)
  if (!answered) return undefined
  socket.resume()
  // `closed` resolves when the engine has ended.
  return { closed, close: () => socket.destroy() }
}

const ping = (): Buffer => {
  const body = BSON.serialize({ ping: 1, $db: 'admin' })
  const message = Buffer.alloc(headerBytes + 5 + body.length)
  message.writeInt32LE(message.length, 0)
  message.writeInt32LE(1, 4)
  message.writeInt32LE(opMsg, 12)
  message.set(body, headerBytes + 5)
  return message
}
