import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startCommandProcess } from '../../test/support/processes.ts'
import type { SenderCommand } from '../send/sender.ts'
import { type BenchCore, startCore, startGateway } from '../service.ts'
import { scratchFolder } from '../workspace.ts'
import type { BareCommand } from './bare-server.ts'
import type { ConversationCommand } from './conversation.ts'

export interface Talking {
  name: string
  about: string
  /**
   * Sends `count` messages and returns the latency of each. Meanwhile, `besideEachSecond` other
   * messages per second are sent.
   */
  talk(talk: { count: number; pauseMs: number; besideEachSecond: number }): Promise<number[]>
  stop(): Promise<void>
}

export async function startBare(): Promise<Talking> {
  const reader = await startCommandProcess({ entry: 'bench/latency/reader.ts' })
  const port = await reader.call<number>({ do: 'port' })
  const args = [await scratchFolder('bare'), String(port)]
  const server = await startCommandProcess({ entry: 'bench/latency/bare-server.ts', args })
  return {
    name: 'Bare minimum',
    about:
      'in one process a journaled insert on the same kind of engine, then a write to a socket that another one reads; beside it such inserts, one by one',
    async talk(talk) {
      await server.call({ do: 'write', ...talk } satisfies BareCommand)
      await delay(100)
      return reader.call({ do: 'waits' })
    },
    async stop() {
      for (const each of [server, reader]) await each.stop()
    },
  }
}

/**
 * The service with one core, and with two cores. With two cores, the agent calls one core and the
 * visitor's gateway uses the other core.
 */
export async function startService(profile?: string): Promise<Talking[]> {
  const near = await startCore({ profile })
  const far = await startCore({ profile, beside: near })
  const one = await startTalking(near, near, profile)
  const two = await startTalking(near, far, profile)
  return [
    {
      name: 'Service, one core',
      about:
        'gateway and core as two processes; from the agent’s Connect call at the core to the bytes of the visitor’s event stream; beside it visitors’ messages through the gateway',
      ...one,
    },
    {
      name: 'Service, two cores',
      about: 'as with one core, but the agent calls one core and the visitor’s gateway uses the other',
      talk: two.talk,
      async stop() {
        await two.stop()
        for (const each of [far, near]) await each.running.stop()
      },
    },
  ]
}

async function startTalking(agents: BenchCore, visitors: BenchCore, profile?: string) {
  const gateway = await startGateway(visitors, { profile })
  const port = String(gateway.port)
  const args = [agents.url, join(agents.dataDir, 'demo.json'), port]
  const conversation = await startCommandProcess({ entry: 'bench/latency/conversation.ts', args })
  const sender = await startCommandProcess({ entry: 'bench/send/sender.ts', args: ['service', port] })
  return {
    async talk({ count, pauseMs, besideEachSecond }: Parameters<Talking['talk']>[0]): Promise<number[]> {
      if (besideEachSecond > 0) await sender.call({ do: 'begin', eachSecond: besideEachSecond } satisfies SenderCommand)
      try {
        return await conversation.call<number[]>({ do: 'talk', count, pauseMs } satisfies ConversationCommand)
      } finally {
        if (besideEachSecond > 0) await sender.call({ do: 'end' } satisfies SenderCommand)
      }
    },
    async stop() {
      for (const each of [sender, conversation, gateway.running]) await each.stop()
    },
  }
}
