import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { freePort, type StartedProcess, startCommandProcess } from '../../test/support/processes.ts'
import { type Contender, type Running, scratchFolder } from '../measure.ts'
import { startNchan } from '../rivals/programs.ts'
import { type OpenServer, startBare } from '../rivals/servers.ts'
import { profiling, type ServiceOptions, startService } from '../service.ts'
import { createVisitors, pageHeaders, widgetPath } from '../visitors.ts'

/** A running stream server. Its `work` takes the commands of visitors and publisher. Visitors connect to `server`. */
export interface Streaming extends Running {
  servers: StartedProcess[]
  behind: StartedProcess[]
  /** Bytes in use after a forced garbage collection. Undefined for a process that does not run on Node. */
  heapBytes: { server?: () => Promise<number>; behind?: () => Promise<number> }
}
export type StreamContender = Contender<Streaming>

export interface StreamVisitor {
  channel: string
  /** Head of the request that opens the visitor's stream, without the final empty line. */
  head: string
}

/** Returns Node arguments that add a heap probe, and a function that reads it. */
async function heapProbe() {
  const port = await freePort()
  const url = pathToFileURL(join(import.meta.dirname, 'memory-probe.ts'))
  url.searchParams.set('port', String(port))
  return { nodeArgs: ['--import', url.href], heapBytes: async () => Number(await text(connect(port, '127.0.0.1'))) }
}

async function streaming(
  { servers, behind, heapBytes }: Pick<Streaming, 'servers' | 'behind' | 'heapBytes'>,
  { ports, visitorsFile, target }: { ports: number[]; visitorsFile: string; target: string },
): Promise<Streaming> {
  const visitors = await startCommandProcess({ entry: 'bench/streams/visitors.ts' })
  const publisher = await startCommandProcess({ entry: 'bench/streams/publisher.ts', args: [target] })
  const load = { do: 'load', file: visitorsFile, ports }
  for (const each of [visitors, publisher]) await each.call(load)
  return {
    ...{ servers, behind, heapBytes, processes: { server: servers, behind } },
    work: <Answer>(command: object) =>
      ['flows', 'each'].includes((command as { do: string }).do)
        ? publisher.call<Answer>(command)
        : visitors.call<Answer>(command),
    async stop() {
      for (const each of [visitors, publisher, ...servers, ...behind]) await each.stop()
    },
  }
}

/** The service. Its visitors are created once and reused at every start. */
function serviceAs(name: string, about: string, options: ServiceOptions): StreamContender {
  let seeded: Promise<{ dataDir: string; visitorsFile: string }> | undefined
  return {
    name,
    about: `${about} with the embedded MongoDB engine; grants are checked, every event comes by an agent’s Connect call and is in the journaled log before it goes out`,
    async start({ gateways = 1, visitors = 0, profile }) {
      await requireFiles(visitors + 1_000)
      seeded ??= seed(options, visitors)
      const { dataDir, visitorsFile } = await seeded
      const front = await heapProbe()
      const back = await heapProbe()
      const nodeArgs = { gateway: front.nodeArgs, serve: front.nodeArgs, core: back.nodeArgs }
      const service = await startService({ ...options, gateways, dataDir, nodeArgs, profile })
      const { gateway = [], serve = [], core = [], engine = [] } = service.processes
      return streaming(
        {
          ...{ servers: [...gateway, ...serve], behind: [...core, ...engine] },
          heapBytes: { server: front.heapBytes, ...(core.length > 0 && { behind: back.heapBytes }) },
        },
        { ports: service.access.ports, visitorsFile, target: service.accessFile },
      )
    },
  }
}

async function seed(options: ServiceOptions, count: number) {
  const dataDir = await scratchFolder('streams')
  const service = await startService({ ...options, dataDir })
  const { ports, siteKey } = service.access
  const created = await createVisitors(ports[0]!, siteKey, count)
  const headers = { Host: '127.0.0.1', ...pageHeaders, Accept: 'text/event-stream' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const visitors = created.map(({ conversationId, accessGrant }): StreamVisitor => {
    const head = `GET ${widgetPath}/events HTTP/1.1\r\n${lines.join('')}Authorization: Bearer ${accessGrant}\r\n`
    return { channel: conversationId, head }
  })
  const visitorsFile = join(dataDir, 'visitors.json')
  await writeFile(visitorsFile, JSON.stringify(visitors), { mode: 0o600 })
  await service.stop()
  return { dataDir, visitorsFile }
}

/** A server that offers `/sub/<channel>` and `/pub/<channel>`. */
const plain = (
  name: string,
  about: string,
  open: (visitors: number, nodeArgs: string[]) => Promise<OpenServer>,
  isNode = true,
): StreamContender => ({
  name,
  about,
  async start({ visitors = 0, profile }) {
    await requireFiles(visitors + 1_000)
    const { nodeArgs, heapBytes } = await heapProbe()
    const { port, server, store = [] } = await open(visitors, [...nodeArgs, ...profiling(profile, 'bare')])
    const visitorsFile = join(await scratchFolder('visitors'), 'visitors.json')
    const all = Array.from({ length: visitors }, (_, index): StreamVisitor => {
      const head = `GET /sub/channel-${index} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n`
      return { channel: `channel-${index}`, head }
    })
    await writeFile(visitorsFile, JSON.stringify(all))
    const heaps = isNode ? { server: heapBytes } : {}
    return streaming(
      { servers: [server], behind: store, heapBytes: heaps },
      { ports: [port], visitorsFile, target: String(port) },
    )
  },
})

export const inParts = serviceAs('Service', 'gateway and core as two processes', {})
export const contenders = [
  inParts,
  serviceAs('Service, one process', '`npm run serve`', { layout: 'serve' }),
  plain(
    'Bare Node',
    'node:http, one process, the last 400 events of each channel in memory; no grants, no log, no limits',
    (_, nodeArgs) => startBare('none', nodeArgs),
  ),
  plain('Journaled Node', 'the same, with one journaled insert per event before the event is shown', (_, nodeArgs) =>
    startBare('mongodb', nodeArgs),
  ),
  plain(
    'Grouped Node',
    'the same, with one insert for all events that arrive during the insert before',
    (_, nodeArgs) => startBare('grouped mongodb', nodeArgs),
  ),
  plain(
    'nginx + nchan',
    'one worker, events in its own memory; no grants, no log on disk',
    (visitors) => startNchan(visitors + 1_000),
    false,
  ),
]

/** Throws if the limit of open files is too low. Each stream needs one open file in each process. */
async function requireFiles(count: number): Promise<void> {
  const { stdout } = await promisify(execFile)('sh', ['-c', 'ulimit -n'])
  if (stdout.trim() !== 'unlimited' && Number(stdout) < count)
    throw new Error(
      `${count} open files are needed and ${stdout.trim()} are allowed: raise it with \`ulimit -n ${count}\``,
    )
}
