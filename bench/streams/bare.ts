import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Running, startCommandProcess } from '../processes.ts'
import { scratchFolder } from '../workspace.ts'
import type { Contender, Streaming } from './contender.ts'
import { heapProbe } from './memory.ts'

/** The lower bound for a stream server. */
export const bare: Contender = {
  name: 'Bare Node',
  about: 'node:http, one process, the last 400 events of each channel in memory; no grants, no log, no limits',
  async start({ gateways, visitors, profile }) {
    if (gateways > 1) throw new Error('it has no log that two of them could share')
    const { nodeArgs, heapBytes } = await heapProbe()
    const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
    const server = await startCommandProcess({
      entry: 'bench/streams/bare-server.ts',
      nodeArgs: [...nodeArgs, ...profiling],
    })
    const port = await server.call<number>({})
    const streaming = await plainStreaming(server, port, visitors)
    return { ...streaming, heapBytes: async () => ({ gateway: await heapBytes(), behind: 0 }) }
  },
}

/** A server of plain HTTP with `/sub/<channel>` and `/pub/<channel>`. */
export async function plainStreaming(server: Running, port: number, count: number): Promise<Streaming> {
  const visitorsFile = join(await scratchFolder('visitors'), 'visitors.json')
  const visitors = Array.from({ length: count }, (_, index) => ({
    channel: `channel-${index}`,
    head: `GET /sub/channel-${index} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n`,
  }))
  await writeFile(visitorsFile, JSON.stringify(visitors))
  const entry = 'bench/streams/http-publisher.ts'
  const publisher = await startCommandProcess({ entry, args: [String(port)] })
  return {
    ports: [port],
    visitorsFile,
    publisher,
    gateways: [server],
    behind: [],
    heapBytes: async () => undefined,
    fill: (request) => publisher.call({ do: 'each', ...request }),
    async stop() {
      await publisher.stop()
      await server.stop()
    },
  }
}
