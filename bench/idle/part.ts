import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { clusterSettings } from '../../test/cluster/config.ts'
import { freePort, type StartedProcess, startProcess } from '../../test/support/processes.ts'
import type { Part } from '../part.ts'
import { startCore, startGateway } from '../service.ts'
import { cellOf } from '../table.ts'
import { usageOf } from '../usage.ts'
import { scratchFolder } from '../workspace.ts'

interface Layout {
  processes: StartedProcess[]
  metricsUrls: string[]
}

/** After a start, caches are cold and jobs run for the first time. */
const restMs = 20_000
/** Jobs look for due work with `findAndModify`, which writes nothing if there is none. */
const writes = ['insert', 'update', 'delete', 'bulkWrite']

const layouts: Record<string, () => Promise<Layout>> = {
  'one process, with its engine': startAll,
  'two cores, with their engine': startTwoCores,
}

async function startAll(): Promise<Layout> {
  const [gateway, core, demo, metrics] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const ports = { GATEWAY_PORT: gateway, CORE_PORT: core, DEMO_PORT: demo, METRICS_PORT: metrics }
  const env = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]))
  const running = await startProcess({
    entry: 'dev/start.ts',
    env: { ...env, ...clusterSettings(), DATA_DIR: join(await scratchFolder('idle'), 'data'), LOG_LEVEL: 'warn' },
    readyUrl: `http://127.0.0.1:${gateway}/readyz`,
  })
  return { processes: [running], metricsUrls: [metricsUrl(metrics)] }
}

async function startTwoCores(): Promise<Layout> {
  const [one, two] = [await freePort(), await freePort()]
  const first = await startCore({ env: { METRICS_PORT: String(one) } })
  const second = await startCore({ beside: first, env: { METRICS_PORT: String(two) } })
  const gateway = await startGateway(first, { env: { CORE_URLS: `${first.url},${second.url}`, METRICS_PORT: '0' } })
  return {
    processes: [first.running, second.running, gateway.running],
    metricsUrls: [metricsUrl(one), metricsUrl(two)],
  }
}

const metricsUrl = (port: number) => `http://127.0.0.1:${port}/metrics`

/** Returns how many commands the cores have sent to the database, by name. */
async function commandsOf(urls: string[]): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for (const url of urls) {
    const text = await (await fetch(url)).text()
    for (const [, command = '', count] of text.matchAll(
      /^\w+_command_duration_seconds_count\{.*command="(\w+)".*\} (\d+)/gm,
    ))
      counts.set(command, (counts.get(command) ?? 0) + Number(count))
  }
  return counts
}

/** Measures what the service costs while nobody uses it: processor time, and commands of the database. */
export const idlePart: Part = async ({ rounds, quick, only, log }) => {
  const measuredMs = quick ? 20_000 : 60_000
  const rows = []
  for (const [name, start] of Object.entries(layouts)) {
    if (only.length > 0 && !only.some((each) => name.includes(each))) continue
    const found: { cpu: number; commands: number; writes: number }[] = []
    const { processes, metricsUrls } = await start()
    const pids = processes.map(({ pid }) => pid)
    // The first scrape measures what is not measured again for minutes.
    await commandsOf(metricsUrls)
    await delay(restMs)
    for (let round = 0; round < rounds; round += 1) {
      const [usage, counts] = [await usageOf(pids), await commandsOf(metricsUrls)]
      await delay(measuredMs)
      const [after, later] = [await usageOf(pids), await commandsOf(metricsUrls)]
      const seconds = measuredMs / 1000
      const perSecond = [...later].map(
        ([command, count]) => [command, (count - (counts.get(command) ?? 0)) / seconds] as const,
      )
      const sum = (of: typeof perSecond) => of.reduce((total, [, count]) => total + count, 0)
      found.push({
        cpu: ((after.cpuSeconds - usage.cpuSeconds) / seconds) * 100,
        commands: sum(perSecond),
        writes: sum(perSecond.filter(([command]) => writes.includes(command))) * 10,
      })
      log(
        `${name}: ${perSecond
          .filter(([, count]) => count > 0)
          .map(([command, count]) => `${command} ${count.toFixed(2)}/s`)
          .join(', ')}`,
      )
    }
    for (const running of processes.toReversed()) await running.stop()
    rows.push({
      name,
      cells: [
        cellOf(found, ({ cpu }) => cpu, '%', 2),
        cellOf(found, ({ commands }) => commands, '/s', 2),
        cellOf(found, ({ writes: count }) => count, '', 2),
      ],
    })
  }
  return [
    {
      title: 'The service while nobody uses it',
      columns: ['', 'of one processor', 'commands of the database', 'writes in ten seconds'],
      rows,
      notes: ['Measured after a rest of 20 s. The processor time includes the embedded engine.'],
    },
  ]
}
