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
 * Makes the driver's writes to a closed socket fail at once. `writeCommand` of driver version 7.8.0 writes to a
 * destroyed socket that has not emitted `close`, and waits for a `drain` that never comes. When a server dies,
 * the driver retries on such connections. If its server monitor hangs, it never finds the server again. Also
 * converts the error of a socket that ends during the wait for `drain`. Otherwise the driver does not retry,
 * and callers do not recognise an unreachable database.
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
