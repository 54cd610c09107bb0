import { type CommandProcess, startCommandProcess } from '../../test/support/processes.ts'
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

export const bare: Contender = {
  name: 'Fastify alone',
  about: 'one process on the same kind of engine: checks the body with a schema, one journaled insert per request',
  async start(profile) {
    const args = [await scratchFolder('bare')]
    const server = await startCommandProcess({
      entry: 'bench/send/bare-server.ts',
      args,
      nodeArgs: profiling(profile, 'bare'),
    })
    const port = await server.call<number>({ do: 'port' })
    const sender = await startCommandProcess({ entry: 'bench/send/sender.ts', args: ['bare', String(port)] })
    return {
      sender,
      pids: [server.pid],
      stored: () => server.call({ do: 'count' }),
      async stop() {
        for (const each of [sender, server]) await each.stop()
      },
    }
  },
}
