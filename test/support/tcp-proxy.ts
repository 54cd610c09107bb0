import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  port: number
  /**
   * Stops forwarding data to the client on each connection whose latest request matches the
   * pattern. The connections stay open, as in a network that silently loses packets. The proxy
   * buffers the data until `thaw`.
   */
  freeze(requests: RegExp): void
  /** Ends `freeze` and delivers the buffered data on open connections. */
  thaw(): void
  /** Number of frozen connections. */
  frozen(): number
  /** Number of open connections whose latest request matches the pattern. */
  count(requests: RegExp): number
  close(): Promise<void>
}

/** A TCP proxy to a local server that can silently stop forwarding. */
export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = new URL(targetUrl)
  const links = new Set<{ request: string; fromServer: Socket; toServer: Socket; toClient: Socket }>()
  let requests: RegExp | undefined

  const server = createServer((toClient) => {
    const toServer = connect(Number(target.port), target.hostname)
    const link = { request: '', fromServer: toServer, toServer, toClient }
    links.add(link)
    toClient.on('data', (chunk) => {
      const [line = ''] = chunk.toString('latin1', 0, 200).split('\r\n')
      if (/^[A-Z]+ \//.test(line)) link.request = line
      apply()
      toServer.write(chunk)
    })
    toServer.on('data', (chunk) => toClient.write(chunk))
    for (const [one, other] of [
      [toClient, toServer],
      [toServer, toClient],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => {
        links.delete(link)
        other.destroy()
      })
    }
  })
  server.listen(0)
  await once(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    freeze(matching) {
      requests = matching
      apply()
    },
    thaw() {
      requests = undefined
      apply()
    },
    frozen: () => [...links].filter(({ request }) => requests?.test(request)).length,
    count: (matching) => [...links].filter(({ request }) => matching.test(request)).length,
    async close() {
      for (const { toClient, toServer } of links) {
        toClient.destroy()
        toServer.destroy()
      }
      server.close()
      await once(server, 'close')
    },
  }

  function apply() {
    for (const { request, fromServer } of links) {
      if (requests?.test(request)) fromServer.pause()
      else fromServer.resume()
    }
  }
}
