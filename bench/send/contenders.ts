import { type CommandProcess, type StartedProcess, startCommandProcess } from '../../test/support/processes.ts'
import { installPeers, peerVersion } from '../peers.ts'
import { startPostgres } from '../postgres.ts'
import { startRedis } from '../redis.ts'
import { profiling, startCore, startGateway } from '../service.ts'
import { scratchFolder } from '../workspace.ts'
import type { SenderCommand } from './sender.ts'

export interface Contender {
  name: string
  /** Environment and settings of the contender, printed below the tables. */
  about: string
  start(profile?: string): Promise<Sending>
}

export interface Sending {
  sender: CommandProcess
  /** Processes whose CPU time is measured: all except the sender. */
  pids: number[]
  /** Number of messages in the database. */
  stored(): Promise<number>
  stop(): Promise<void>
}

/** The service, from this checkout or from another one. */
export const serviceOf = (name: string, root?: string): Contender => ({
  name,
  about:
    'gateway and core as two processes on the embedded MongoDB engine, the full contract (grant, origin, idempotency, event log), every acknowledged message journaled; 512 visitors; very high rate limits, other settings at their defaults',
  async start(profile) {
    const core = await startCore({ profile, root })
    const gateway = await startGateway(core, { profile, root })
    const sender = await startCommandProcess({ entry: 'bench/send/sender.ts', args: ['service', String(gateway.port)] })
    return {
      sender,
      pids: [core.running.pid, gateway.running.pid],
      stored: () => sender.call({ do: 'count' } satisfies SenderCommand),
      async stop() {
        for (const each of [sender, gateway.running, core.running]) await each.stop()
      },
    }
  },
})

export const service = serviceOf('Service')

/** A server of one process. `open` starts its store, and returns its arguments and processes. */
interface BareServer {
  name: string
  about: string
  entry?: string
  /** Path of a send, where `*` is the number of a stream. */
  path?: string
  open(): Promise<{ args: string[]; store?: StartedProcess }>
}

const bareServer = ({ name, about, entry = 'bench/send/bare-server.ts', path, open }: BareServer): Contender => ({
  name,
  about,
  async start(profile) {
    const { args, store } = await open()
    const server = await startCommandProcess({ entry, args, nodeArgs: profiling(profile, 'bare') })
    const port = await server.call<number>({ do: 'port' })
    const senderArgs = ['bare', String(port), ...(path ? [path] : [])]
    const sender = await startCommandProcess({ entry: 'bench/send/sender.ts', args: senderArgs })
    return {
      sender,
      pids: [server.pid, ...(store ? [store.pid] : [])],
      stored: () => server.call({ do: 'count' }),
      async stop() {
        for (const each of [sender, server]) await each.stop()
        await store?.stop()
      },
    }
  },
})

export const bare = bareServer({
  name: 'Fastify alone',
  about: 'one process on the same kind of engine: checks the body with a schema, one journaled insert per request',
  open: async () => ({ args: ['mongodb', await scratchFolder('bare')] }),
})

/** Systems that also store each message durably before they answer, and tell listeners of it. */
export const peers: Contender[] = [
  bareServer({
    name: 'PostgreSQL',
    about:
      'Fastify as above, with one statement that inserts and notifies; 20 connections, another one listens; default settings, so each commit is synced',
    async open() {
      await installPeers()
      const { running, uri } = await startPostgres()
      return { args: ['postgres', uri], store: running }
    },
  }),
  bareServer({
    name: 'Redis Streams',
    about: 'Fastify as above, with one XADD per request and appendfsync always; another connection reads the stream',
    async open() {
      const { running, port } = await startRedis('always')
      return { args: ['redis', String(port)], store: running }
    },
  }),
  bareServer({
    name: 'Durable Streams',
    about: `@durable-streams/server ${peerVersion('@durable-streams/server')} with a data folder, 64 streams; each append is synced`,
    entry: 'bench/send/streams-server.ts',
    path: '/streams/*',
    async open() {
      await installPeers()
      return { args: [await scratchFolder('durable-streams')] }
    },
  }),
]
