import { setTimeout as delay } from 'node:timers/promises'
import { type Column, type Contender, compare, measured, type Part, type Running, tablesOf } from './measure.ts'
import { type ServiceOptions, startService } from './service.ts'

/** After a start, jobs run for the first time, and V8 compiles code and collects garbage for most of a minute. */
const restMs = 60_000
/** Jobs look for due work with `findAndModify`, which writes nothing if there is none. */
const writes = ['insert', 'update', 'delete', 'bulkWrite']
const columns: Column[] = [
  ['of one processor', 'percent', '%', 2],
  ['commands of the database', 'commands', '/s', 2],
  ['writes in ten seconds', 'writes', '', 2],
]

const resting = (name: string, about: string, options: ServiceOptions): Contender => ({
  name,
  about,
  async start() {
    const { processes, metricsUrls, stop } = await startService(options)
    // The first scrape measures what is not measured again for minutes.
    await commandsOf(metricsUrls)
    await delay(restMs)
    return { processes, stop, work: async () => (await commandsOf(metricsUrls)) as never }
  },
})

async function commandsOf(urls: string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const url of urls) {
    const text = await (await fetch(url)).text()
    const lines = text.matchAll(/^\w+_command_duration_seconds_count\{.*command="(\w+)".*\} (\d+)/gm)
    for (const [, command = '', count] of lines) counts[command] = (counts[command] ?? 0) + Number(count)
  }
  return counts
}

export const part: Part = async (options) => {
  const seconds = options.quick ? 20 : 60
  const run = async (running: Running) => {
    const before = await running.work({})
    const { cpuSeconds } = await measured(running, async () => {
      await delay(seconds * 1000)
      return { done: 1 }
    })
    const after = Object.entries(await running.work({})).map(
      ([name, count]) => [name, count - (before[name] ?? 0)] as const,
    )
    const sum = (of: typeof after) => of.reduce((total, [, count]) => total + count, 0) / seconds
    const written = after.filter(([name]) => writes.includes(name))
    const rates = Object.fromEntries(after.map(([name, count]) => [name, count / seconds]))
    return { ...rates, percent: (cpuSeconds! / seconds) * 100, commands: sum(after), writes: sum(written) * 10 }
  }
  const contenders = [
    resting('one process', '`npm run serve` and its engine, after a rest of a minute', { layout: 'serve' }),
    resting('two cores', 'two cores, a gateway and their engine, after a rest of a minute', { cores: 2 }),
  ]
  const title = 'The service while nobody uses it'
  return tablesOf(
    await compare({ contenders, steps: [{ name: 'idle', title, columns, run }], options, starts: 'round' }),
  )
}
