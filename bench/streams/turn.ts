import { setTimeout as delay } from 'node:timers/promises'
import type { CommandProcess } from '../../test/support/processes.ts'
import { type Usage, usageOf } from '../usage.ts'
import type { Streaming } from './contender.ts'
import type { Flow, PublishCommand, Published } from './publishing.ts'
import type { StreamFigures, VisitorsCommand } from './visitors.ts'

/**
 * A newly started contender with its visitors and publisher. Each step of each round starts a new
 * one.
 */
export interface Turn {
  streaming: Streaming
  gateways: number[]
  behind: number[]
  open(request: { from: number; count: number; inFlight?: number; events?: number }): Promise<number>
  visitors<Answer = void>(command: VisitorsCommand): Promise<Answer>
  each(request: { from: number; count: number; times: number }): Promise<void>
  /**
   * Publishes the flows for the given time, waits until visitors have all events, and returns the
   * figures.
   */
  flow(flows: Flow[], seconds: number): Promise<FlowFigures>
}

export interface FlowFigures extends Record<string, number> {
  p50: number
  p99: number
  p999: number
  lost: number
  doubles: number
  /** CPU time of the gateways per event, in microseconds. */
  gatewayMicros: number
  behindMicros: number
  /**
   * CPU utilization of the load process (0 to 1). Above 0.8, the load process itself is the
   * bottleneck.
   */
  busy: number
  lag: number
}

/** Default number of streams that are opened concurrently. */
const openingAtOnce = 200
const arriveWithinMs = 15_000

export function createTurn(streaming: Streaming, visitors: CommandProcess): Turn {
  const gateways = streaming.gateways.map(({ pid }) => pid)
  const behind = streaming.behind.map(({ pid }) => pid)
  const send = <Answer>(command: VisitorsCommand) => visitors.call<Answer>(command)
  const publish = (command: PublishCommand) => streaming.publisher.call<Published>(command)

  return {
    streaming,
    gateways,
    behind,
    open: ({ inFlight = openingAtOnce, ...range }) => send({ do: 'open', ...range, inFlight }),
    visitors: send,
    async each(request) {
      await send({ do: 'takeFigures' })
      const { published } = await publish({ do: 'each', ...request })
      await send({ do: 'wait', events: published, withinMs: arriveWithinMs })
      await send({ do: 'takeFigures' })
    },
    async flow(flows, seconds) {
      await send({ do: 'takeFigures' })
      const before = await Promise.all([usageOf(gateways), usageOf(behind)])
      const { published, failed, lagP99 } = await publish({ do: 'flows', flows, seconds })
      await send({ do: 'wait', events: published - failed, withinMs: arriveWithinMs })
      const after = await Promise.all([usageOf(gateways), usageOf(behind)])
      // Waits for late duplicates, so that they are counted, too.
      await delay(200)
      const {
        events,
        doubles,
        p50,
        p99,
        p999,
        busy,
        lagP99: loadLag,
      } = await send<StreamFigures>({ do: 'takeFigures' })
      const micros = (index: 0 | 1) => (cpuBetween(before[index], after[index]) / published) * 1e6
      return {
        ...{ p50, p99, p999, lost: published - events, doubles, busy, lag: Math.max(lagP99, loadLag) },
        ...{ gatewayMicros: micros(0), behindMicros: micros(1) },
      }
    },
  }
}

export const cpuBetween = (before: Usage, after: Usage): number => after.cpuSeconds - before.cpuSeconds
