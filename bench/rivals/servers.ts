import { type CommandProcess, type StartedProcess, startCommandProcess } from '../../test/support/processes.ts'
import { type Contender, type Running, scratchFolder } from '../measure.ts'
import { profiling, startLoad } from '../service.ts'
import { installPeers, peerVersion, startPostgres, startRedis } from './programs.ts'

export interface OpenServer {
  port: number
  server: StartedProcess
  store?: StartedProcess[]
  /** Missing if the server keeps messages in memory only. */
  count?(): Promise<number>
}

/** A server with the load of `load.ts`, which posts as this kind of server takes it. */
const server = (
  name: string,
  about: string,
  kind: string,
  open: (profile?: string) => Promise<OpenServer>,
): Contender => ({
  name,
  about,
  async start({ profile }): Promise<Running> {
    const opened = await open(profile)
    const { store = [], count } = opened
    const load = await startLoad(`${kind}:${opened.port}`)
    return {
      processes: { server: [opened.server], store },
      work: load.call,
      ...(count && { stored: count }),
      async stop() {
        for (const each of [load, opened.server, ...store]) await each.stop()
      },
    }
  },
})

/** Starts a server of ours on a store that runs already. */
async function ownServer(entry: string, args: string[], nodeArgs: string[] = []) {
  const running: CommandProcess = await startCommandProcess({ entry: `bench/rivals/${entry}`, args, nodeArgs })
  const port = await running.call<number>({ do: 'port' })
  return { port, server: running, count: () => running.call<number>({ do: 'count' }) }
}

/** Starts the bare server on an engine of its own, or without a store. */
export async function startBare(
  store: 'none' | 'mongodb' | 'grouped mongodb',
  nodeArgs: string[] = [],
): Promise<OpenServer> {
  if (store === 'none') return ownServer('bare-server.ts', [store], nodeArgs)
  const engine = await startCommandProcess({ entry: 'bench/engine.ts', args: [await scratchFolder('bare')] })
  return { ...(await ownServer('bare-server.ts', [store, await engine.call<string>({})], nodeArgs)), store: [engine] }
}

/** The least that a server on the same kind of engine can do. */
export const bareServers: Contender[] = [
  server(
    'Fastify alone',
    'one process on the same kind of engine: checks the body with a schema, one journaled insert per request; an agent’s message is inserted, then written to the stream',
    'bare',
    (profile) => startBare('mongodb', profiling(profile, 'bare')),
  ),
  server(
    'Fastify, grouped',
    'the same, with one insert for all messages that arrive during the insert before',
    'bare',
    (profile) => startBare('grouped mongodb', profiling(profile, 'grouped')),
  ),
]

/** Systems that are durable too and tell listeners. */
export const rivals: Contender[] = [
  server(
    'PostgreSQL',
    'Fastify, with one statement that inserts and notifies; 20 connections, another one listens; default settings, so each commit is synced',
    'bare',
    async () => {
      await installPeers()
      const { running, uri } = await startPostgres()
      return { ...(await ownServer('bare-server.ts', ['postgres', uri])), store: [running] }
    },
  ),
  server(
    'Redis Streams',
    'Fastify, with one XADD per request and appendfsync always; another connection reads the stream',
    'bare',
    async () => {
      const { running, port } = await startRedis('always')
      return { ...(await ownServer('bare-server.ts', ['redis', String(port)])), store: [running] }
    },
  ),
  server(
    'Durable Streams',
    `${peerVersion('@durable-streams/server')} with a data folder, 64 streams; each append is synced`,
    'streams',
    async () => {
      await installPeers()
      return ownServer('streams-server.ts', [await scratchFolder('durable-streams')])
    },
  ),
]
