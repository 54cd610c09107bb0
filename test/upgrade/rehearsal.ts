import { setTimeout as delay } from 'node:timers/promises'
import { type Report, runWith } from '../chaos/run.ts'
import type { Part, Service } from '../chaos/service.ts'
import { startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { presentRoot } from './versions.ts'

export interface RehearsalReport extends Report {
  /** Parts that did not stop by themselves in time. */
  killed: string[]
}

/** Time in milliseconds for which both versions run at the same time after each step. */
const besideMs = 1_500

/**
 * Upgrades a running service from the source in `oldRoot` to the present source, part by part under traffic. Rolls it
 * back, upgrades it again and contracts the database. The report has every broken guarantee.
 */
export async function rehearse(options: {
  oldRoot: string
  seed: number
  visitors: number
  say: (line: string) => void
}): Promise<RehearsalReport> {
  const { oldRoot, say, seed, visitors } = options
  const killed: string[] = []

  /** Replaces the parts one after the other by parts of another version. */
  async function replace(parts: Part[], version: 'old' | 'new') {
    for (const part of parts) {
      const { code } = await part.stop()
      if (code !== 0) killed.push(`${part.name} of the other version than ${version}`)
      await part.start(version === 'old' ? oldRoot : presentRoot)
      say(`${part.name}: ${version} version`)
      await delay(besideMs)
    }
  }

  const run = { seed, arrivalSeconds: 20, visitors, say, root: oldRoot }
  const report = await runWith(run, async (service) => {
    const { cores, gateways, workers } = service
    await delay(besideMs)
    await migrate(service, say, [])
    for (const parts of [cores, workers, gateways]) await replace(parts, 'new')
    for (const parts of [gateways, workers, cores]) await replace(parts, 'old')
    for (const parts of [cores, workers, gateways]) await replace(parts, 'new')
    await migrate(service, say, ['--contract'])
    await delay(besideMs)
  })
  return { ...report, killed }
}

/** Runs `npm run migrate` of the present version. */
async function migrate({ dataDir, engine }: Service, say: (line: string) => void, args: string[]) {
  const env = { DATA_DIR: dataDir, MONGODB_URI: engine.uri, LOG_LEVEL: 'warn' }
  const running = await startProcess({ entry: 'dev/migrate.ts', args, env })
  const { code } = await running.exited
  await until('the output', () => running.output() !== '')
  say(`migrate ${args.join(' ')}: ${running.output().trim()}`)
  if (code !== 0) throw new Error(`migrate ended with code ${code}`)
}
