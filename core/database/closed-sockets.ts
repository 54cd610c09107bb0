import { MongoNetworkError } from 'mongodb'
// @ts-expect-error: the driver says nothing of its insides.
import { Connection } from 'mongodb/lib/cmap/connection.js'

interface DriverConnection {
  socket: { destroyed: boolean; writable: boolean }
  onError(error: Error): void
  writeCommand(...given: unknown[]): Promise<void>
}

let isDone = false

/**
 * Makes the driver fail at once where it would hang: it writes to a destroyed socket that has not
 * emitted its end yet, and waits for a drain event that never comes (7.8.0, `writeCommand`). When a
 * server dies, all its connections end in one turn of the event loop. So a command that failed on
 * one connection is retried on the next. If that is the monitor's, the process never finds the
 * server again.
 */
export function failOnClosedSockets(): void {
  if (isDone) return
  isDone = true
  const { writeCommand } = Connection.prototype as DriverConnection
  Connection.prototype.writeCommand = async function (this: DriverConnection, ...given: unknown[]) {
    if (this.socket.destroyed || !this.socket.writable) {
      const error = new MongoNetworkError('the connection has ended')
      this.onError(error)
      throw error
    }
    return writeCommand.apply(this, given)
  }
}
