import { type Filled, fill, newConversations, perConversation } from './filling.ts'
import type { Kind, LoadCommand } from './load.ts'
import { amount, type Column, compare, measured, type Part, ratioTable, type Step, tablesOf } from './measure.ts'
import { type LoadedService, serviceWith } from './service.ts'

const sizes = [10_000, 100_000, 1_000_000]
const actions: [kind: Kind, name: string][] = [
  ['page', 'a page of 20'],
  ['send', 'a send'],
  ['largest page', 'a page anywhere in the largest conversation'],
  ['largest send', 'a send to the largest conversation'],
]
const columns: Column[] = [
  ['median', 'p50', 'ms', 2],
  ['99th percentile', 'p99', 'ms', 1],
  ['processor time of a request', 'cpuMicros', 'µs', 0],
]

/** The first visitor has a tenth of all messages, other conversations 20 each. */
function filledWith(messages: number) {
  const service = serviceWith(`${amount(messages)} messages`, 'a gateway, a core and an engine of its own')
  return {
    ...service,
    async start(given: object): Promise<LoadedService> {
      const running = await service.start(given)
      const largest = messages / 10
      const [first, ...visitors] = await running.work<Filled[]>({ do: 'visitors' } satisfies LoadCommand)
      const others = newConversations('filling', (messages - largest) / perConversation - visitors.length)
      // Each visitor has a message already.
      const all = [...visitors.map((visitor) => ({ ...visitor, from: 1 })), ...others]
      const steps = Math.ceil(all.length / perConversation)
      const share = Math.ceil(largest / steps)
      const withLargest = Array.from({ length: steps }, (_, index) => [
        { ...first!, from: 1 + index * share, count: share },
        ...all.slice(index * perConversation, (index + 1) * perConversation),
      ]).flat()
      await fill(running.service.access, { conversations: withLargest, areNew: false })
      await running.work({ do: 'setLargest', length: largest } satisfies LoadCommand)
      return running
    },
  }
}

export const part: Part = async (options) => {
  const { quick } = options
  const times = quick ? 100 : 400
  const stores = (quick ? sizes.slice(0, 2) : sizes).map(filledWith)
  const steps = actions.map(([kind, name]): Step => {
    const command: LoadCommand = { do: 'requests', kind, connections: 1, times }
    return {
      ...{ name: kind, title: 'Single requests, by number of stored messages', columns },
      row: (contender) => `${name}, ${contender}`,
      run: (running) => measured(running, () => running.work(command)),
    }
  })
  const results = await compare({
    ...{ contenders: stores, steps, options },
    async warmUp(running) {
      for (const [kind] of actions)
        await measured(running, () => running.work({ do: 'requests', kind, connections: 1, times: 300 }))
    },
  })
  const ratios = ratioTable(
    results,
    'Relative to the smallest store',
    columns.slice(0, 1),
    (of, to) => of.step === to.step && to.contender === stores[0] && of.step.row!(of.contender.name, ''),
  )
  return [...tablesOf(results), ratios]
}
