import type { Table } from '../table.ts'

export interface PartCosts {
  idleMb: number
  streamKb: number
  messageUs: number
}

export interface Costs {
  gateway: PartCosts
  core: PartCosts
  engineMessageUs: number
  sessionBytes: number
  messageBytes: number
}

/** A usual day of people who chat. */
const usage = { busiestHour: 0.15, minutesOpen: 10, messagesEach: 8 }
/** What a part may use in the busiest hour. The rest is for peaks. */
const share = { memoryMb: 1_024 * 0.7, processor: 0.5 }

/**
 * Returns what a day with `visitors` needs in its busiest hour. Each part has 1 processor and 1 GiB. The load still
 * fits when one gateway and one core are missing.
 */
export function sizeFor(visitors: number, costs: Costs) {
  const inBusiestHour = visitors * usage.busiestHour
  const streams = (inBusiestHour * usage.minutesOpen) / 60
  const messagesPerSecond = (inBusiestHour * usage.messagesEach) / 3_600
  const countOf = ({ idleMb, streamKb, messageUs }: PartCosts) => {
    const byMemory = (streams * streamKb) / 1_000 / (share.memoryMb - idleMb)
    const byProcessor = (messagesPerSecond * messageUs) / 1e6 / share.processor
    return 1 + Math.max(1, Math.ceil(byMemory), Math.ceil(byProcessor))
  }
  const [gateways, cores] = [countOf(costs.gateway), countOf(costs.core)]
  const memoryOf = ({ idleMb, streamKb }: PartCosts, parts: number) => idleMb + (streams * streamKb) / 1_000 / parts
  return {
    streams,
    messagesPerSecond,
    gateways,
    cores,
    gatewayMb: memoryOf(costs.gateway, gateways),
    coreMb: memoryOf(costs.core, cores),
    engineProcessors: (messagesPerSecond * costs.engineMessageUs) / 1e6,
    diskMbPerDay: (visitors * (costs.sessionBytes + usage.messagesEach * costs.messageBytes)) / 1e6,
  }
}

export function sizesTable(costs: Costs): Table {
  const cell = (value: number, unit = '', digits = 0) => ({ values: [value], unit, digits })
  return {
    title: 'Sizes, from these costs',
    columns: [
      'people who open the chat, a day',
      'streams',
      'messages a second',
      'gateways, memory of each',
      'cores, memory of each',
      'processors of the database',
      'disk a day',
    ],
    rows: [1_000, 10_000, 100_000, 1_000_000].map((visitors) => {
      const size = sizeFor(visitors, costs)
      return {
        name: visitors.toLocaleString('en'),
        cells: [
          cell(size.streams),
          cell(size.messagesPerSecond, '', 1),
          cell(size.gatewayMb, `MB, ${size.gateways} gateways`),
          cell(size.coreMb, `MB, ${size.cores} cores`),
          cell(size.engineProcessors, '', 2),
          cell(size.diskMbPerDay, 'MB', 1),
        ],
      }
    }),
    notes: [
      `The busiest hour has ${usage.busiestHour * 100} % of a day. A chat is open for ${usage.minutesOpen} minutes and has ${usage.messagesEach} messages of both sides. Streams = people × ${usage.busiestHour} × ${usage.minutesOpen} / 60; messages a second = people × ${usage.busiestHour} × ${usage.messagesEach} / 3,600.`,
      `A part has 1 processor and 1 GiB, of which it uses at most ${share.processor * 100} % and ${Math.round(share.memoryMb)} MB. One gateway and one core are spare. The disk is that of one member of the set, without its journal.`,
    ],
  }
}
