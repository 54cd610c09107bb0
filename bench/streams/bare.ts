import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type StartedProcess, startCommandProcess } from '../../test/support/processes.ts'
import { scratchFolder } from '../workspace.ts'
import type { Contender, Streaming } from './contender.ts'
import { heapProbe } from './memory.ts'

/** A minimal stream server. Its figures are the lower bound. */
export const bare = bareServer({
  name: 'Bare Node',
  about: 'node:http, one process, the last 400 events of each channel in memory; no grants, no log, no limits',
  isJournaled: false,
})

/** The same server with the same promise about stored events as the service. */
export const journaled = bareServer({
  name: 'Journaled Node',
  about: 'the bare Node server, with one journaled insert per event on the embedded engine before the event is shown',
  isJournaled: true,
})

function bareServer({ name, about, isJournaled }: { name: string; about: string; isJournaled: boolean }): Contender {
  return {
    name,
    about,
    async start({ gateways, visitors, profile }) {
      if (gateways > 1) throw new Error('minimal stream servers cannot share events')
      const { nodeArgs, heapBytes } = await heapProbe()
      const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
      const server = await startCommandProcess({
        entry: 'bench/streams/bare-server.ts',
        args: isJournaled ? [await scratchFolder('journaled')] : [],
        nodeArgs: [...nodeArgs, ...profiling],
      })
      const port = await server.call<number>({})
      const streaming = await plainStreaming(server, port, visitors)
      return { ...streaming, heapBytes: async () => ({ gateway: await heapBytes(), behind: 0 }) }
    },
  }
}

/**
 * Implements `Streaming` for a server that offers `/sub/<channel>` and `/pub/<channel>` over plain
 * HTTP.
 */
export async function plainStreaming(server: StartedProcess, port: number, count: number): Promise<Streaming> {
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
    async stop() {
      await publisher.stop()
      await server.stop()
    },
  }
}
