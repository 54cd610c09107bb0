import { once } from 'node:events'
import { ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Gauge, Registry } from 'prom-client'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { serveHealth } from '../../delivery/health.ts'
import { boundServer } from '../../platform/http/bounded-server.ts'
import { serveMetrics } from '../../platform/observability/metrics-server.ts'
import { createDemoSite } from '../../widget/demo/server.ts'
import { freePort } from '../support/free-port.ts'
import { itLong } from '../support/is-long.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

const CLIENTS = 10
/** More requests than may wait on a connection. */
const TOO_MANY = 1_000
/** As many requests as may wait on a connection. */
const WAITING = 90
const MIB = 1024 * 1024

/** Starts metrics of a mebibyte. */
async function startMetrics(): Promise<number> {
  const port = await freePort()
  const registry = new Registry()
  const help = 'x'.repeat(MIB)
  new Gauge({ name: 'large', help, registers: [registry] }).set(1)
  const server = await serveMetrics({ METRICS_HOST: '127.0.0.1', METRICS_PORT: port }, [registry])
  onTestFinished(() => server!.close())
  return port
}

async function startHealth(): Promise<number> {
  const server = await serveHealth({ host: '127.0.0.1', port: 0, isReady: () => true })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function startDemo(): Promise<number> {
  const server = await createDemoSite({ gatewayUrl: 'http://127.0.0.1:1', siteKey: 'pk_demo' })
  boundServer(server)
  const { port, close } = await listen(server)
  onTestFinished(close)
  return port
}

function askWithoutReading(port: number, path: string, times: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' }).pause()
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times))
  onTestFinished(() => void socket.destroy())
  return socket
}

const servers = [
  ['the metrics port', '/metrics', startMetrics],
  ['the health port of a worker', '/readyz', startHealth],
  ['the demo', '/', startDemo],
] as const

describe.each(servers)('clients of %s that do not read their answers', (_, path, start) => {
  itLong('are disconnected with too many waiting requests, and others are answered', async () => {
    const port = await start()
    const ended = Array.from({ length: CLIENTS }, () => once(askWithoutReading(port, path, TOO_MANY).resume(), 'close'))
    await Promise.all(ended)
    expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
  })
})

describe('clients of the metrics port that do not read their answers', () => {
  itLong('get no further answer before the network has taken the previous one', async () => {
    const port = await startMetrics()
    const answers = vi.spyOn(ServerResponse.prototype, 'end')
    onTestFinished(() => answers.mockRestore())
    for (let client = 0; client < CLIENTS; client++) askWithoutReading(port, '/metrics', WAITING)
    let made = -1
    await until(
      'the end of the answers',
      () => {
        const before = made
        made = answers.mock.calls.length
        return made > 0 && made === before
      },
      500,
    )
    // The buffers of the system hold some mebibytes of each connection.
    expect(made).toBeLessThan((CLIENTS * WAITING) / 3)
  })
})
