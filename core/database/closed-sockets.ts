import { MongoNetworkError } from 'mongodb'
// @ts-expect-error: the driver has no types for its internal modules.
import { Connection } from 'mongodb/lib/cmap/connection.js'

interface DriverConnection {
  socket: { destroyed: boolean; writable: boolean }
  onError(error: Error): void
  writeCommand(...given: unknown[]): Promise<void>
}

let isDone = false

/**
 * Makes the MongoDB driver's writes to a closed socket fail at once. Without this function,
 * `writeCommand` of driver version 7.8.0 can hang. It writes to a destroyed socket that has not
 * emitted `close`, and waits for a `drain` event that is never emitted. When a server dies, all its
 * connections end in one turn of the event loop. The driver then retries a failed command on
 * another connection that is also closed. If the command of the driver's server monitor hangs in
 * this way, the driver never detects that the server is available again.
 *
 * Also converts the error of a socket that ends while a write waits for `drain`. The driver passes it on
 * as it is, so it repeats no such command, and callers do not recognise an unreachable database.
 */
export function failOnClosedSockets() {
  if (isDone) return
  isDone = true
  const { writeCommand } = Connection.prototype as DriverConnection
  Connection.prototype.writeCommand = async function (this: DriverConnection, ...given: unknown[]) {
    if (this.socket.destroyed || !this.socket.writable) {
      const error = new MongoNetworkError('the connection has ended')
      this.onError(error)
      throw error
    }
    return writeCommand.apply(this, given).catch((cause: Error) => {
      if (!('syscall' in cause)) throw cause
      const error = new MongoNetworkError('the connection has ended', { cause })
      this.onError(error)
      throw error
    })
  }
}
