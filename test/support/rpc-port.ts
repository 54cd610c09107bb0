import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPlainListener } from '../../core/transport/listener.ts'

/** A port that serves HTTP/1.1 and HTTP/2 like the port of a core. */
export interface RpcPort {
  port: number
  /** Closes the port and resets its connections. */
  kill(): Promise<void>
}

export async function listenForRpc(handler: RequestListener, wanted = 0): Promise<RpcPort> {
  const { server, sockets } = createPlainListener(handler)
  await new Promise<void>((resolve) => server.listen(wanted, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    async kill() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
