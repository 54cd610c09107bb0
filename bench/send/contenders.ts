import { type CommandProcess, type StartedProcess, startCommandProcess } from '../../test/support/processes.ts'
import { installPeers, peerVersion } from '../peers.ts'
import { startPostgres } from '../postgres.ts'
import { startRedis } from '../redis.ts'
import { profiling, startCore, startGateway } from '../service.ts'
import { startNchan } from '../streams/nchan.ts'
import { scratchFolder } from '../workspace.ts'
import { startEjabberd } from './ejabberd.ts'
import type { SenderCommand } from './sender.ts'
import type { SenderKind } from './sender-settings.ts'

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
  /** Number of messages in the database. Undefined for a contender that stores none. */
  stored(): Promise<number | undefined>
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

/** Another server that takes messages over HTTP. */
interface Peer {
  name: string
  about: string
  /** What the sender posts, and to which path. Default: `bare`. */
  kind?: SenderKind
  open(profile?: string): Promise<OpenPeer>
}

interface OpenPeer {
  port: number
  processes: StartedProcess[]
  /** Number of stored messages. Undefined for a server that keeps them in memory only. */
  count?(): Promise<number>
}

const peer = ({ name, about, kind = 'bare', open }: Peer): Contender => ({
  name,
  about,
  async start(profile) {
    const { port, processes, count = async () => undefined } = await open(profile)
    const sender = await startCommandProcess({ entry: 'bench/send/sender.ts', args: [kind, String(port)] })
    return {
      sender,
      pids: processes.map(({ pid }) => pid),
      stored: count,
      async stop() {
        for (const each of [sender, ...processes]) await each.stop()
      },
    }
  },
})

/** Starts a server of ours, and names the processes of its store. */
async function ownServer(entry: string, args: string[], store: StartedProcess[] = [], profile?: string) {
  const server = await startCommandProcess({ entry, args, nodeArgs: profiling(profile, 'bare') })
  return {
    port: await server.call<number>({ do: 'port' }),
    processes: [server, ...store],
    count: () => server.call<number>({ do: 'count' }),
  }
}

const bareEntry = 'bench/send/bare-server.ts'

export const bare = peer({
  name: 'Fastify alone',
  about: 'one process on the same kind of engine: checks the body with a schema, one journaled insert per request',
  open: async (profile) => ownServer(bareEntry, ['mongodb', await scratchFolder('bare')], [], profile),
})

/** Systems that also store each message durably before they answer, and tell listeners of it. */
const durable: Contender[] = [
  peer({
    name: 'PostgreSQL',
    about:
      'Fastify as above, with one statement that inserts and notifies; 20 connections, another one listens; default settings, so each commit is synced',
    async open() {
      await installPeers()
      const { running, uri } = await startPostgres()
      return ownServer(bareEntry, ['postgres', uri], [running])
    },
  }),
  peer({
    name: 'Redis Streams',
    about: 'Fastify as above, with one XADD per request and appendfsync always; another connection reads the stream',
    async open() {
      const { running, port } = await startRedis('always')
      return ownServer(bareEntry, ['redis', String(port)], [running])
    },
  }),
  peer({
    name: 'Durable Streams',
    about: `@durable-streams/server ${peerVersion('@durable-streams/server')} with a data folder, 64 streams; each append is synced`,
    kind: 'streams',
    async open() {
      await installPeers()
      return ownServer('bench/send/streams-server.ts', [await scratchFolder('durable-streams')])
    },
  }),
  peer({
    name: 'ejabberd',
    about: 'send_message of its HTTP API, 64 users who are away; its archive in PostgreSQL with default settings',
    kind: 'ejabberd',
    open: startEjabberd,
  }),
]

/** Systems that are often chosen although they promise less: a message is lost with their process. */
const inMemory: Contender[] = [
  peer({
    name: 'Socket.IO (in memory)',
    about: `socket.io ${peerVersion('socket.io')} beside Fastify, connection state recovery, one emit per request; promises less: messages are in memory only`,
    async open() {
      await installPeers()
      const { port, processes } = await ownServer(bareEntry, ['socket.io'])
      return { port, processes }
    },
  }),
  peer({
    name: 'nginx + nchan (in memory)',
    about: 'one worker, 64 channels; promises less: messages are in memory only',
    kind: 'nchan',
    async open() {
      const { server, port } = await startNchan(1_000)
      return { port, processes: [server] }
    },
  }),
]

export const peers = [...durable, ...inMemory]
