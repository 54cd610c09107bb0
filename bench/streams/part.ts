import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startCommandProcess } from '../../test/support/processes.ts'
import type { Part } from '../part.ts'
import type { Table } from '../table.ts'
import { bare, journaled } from './bare.ts'
import type { Contender } from './contender.ts'
import { type Extent, type Step, steps } from './layouts.ts'
import { nchan } from './nchan.ts'
import { ours } from './ours.ts'
import type { Figures, Variants } from './steps.ts'
import { createTurn } from './turn.ts'

const contenders = [ours, bare, journaled, nchan]
/**
 * Figures of one contender: for each variant, one entry per round. `failure` is the reason why the
 * contender was not measured.
 */
interface Measured {
  variants: Map<string, Figures[]>
  failure?: string
}

/**
 * Measures visitors' streams. Compares the service with two minimal Node servers and with nginx
 * and nchan.
 */
export const streamsPart: Part = async ({ rounds, quick, full, only, profile, log }) => {
  const named = (name: string) => only.some((each) => name.toLowerCase().startsWith(each.toLowerCase()))
  const chosenSteps = steps.some(({ name }) => named(name)) ? steps.filter(({ name }) => named(name)) : steps
  const chosen = contenders.some(({ name }) => named(name)) ? contenders.filter(({ name }) => named(name)) : contenders
  const visitors = Math.max(...chosenSteps.map((step) => step.visitors))
  await requireFiles(visitors + 1_000)
  const extent: Extent = quick ? 'quick' : full ? 'full' : 'usual'
  const tables: Table[] = []
  for (const step of chosenSteps) {
    const measured = new Map<Contender, Measured>(chosen.map((contender) => [contender, { variants: new Map() }]))
    for (let round = 0; round < rounds; round += 1) {
      // Each round starts with another contender, so that the order does not favour one.
      const order = chosen.map((_, index) => chosen[(index + round) % chosen.length] as Contender)
      for (const contender of order) {
        const found = measured.get(contender) as Measured
        if (found.failure !== undefined) continue
        log(`${step.name}, round ${round + 1} of ${rounds}: ${contender.name}`)
        await takeTurn(contender, step, extent, { visitors, profile }).then(
          (variants) => keep(found, variants, log),
          (error: Error) => {
            found.failure = error.message
            log(`  ${error.message}`)
          },
        )
      }
    }
    tables.push(tableOf(step, measured))
  }
  tables.at(-1)?.notes.push(...chosen.map(({ name, about }) => `${name}: ${about}.`))
  return tables
}

async function takeTurn(
  contender: Contender,
  step: Step,
  extent: Extent,
  options: { visitors: number; profile?: string | undefined },
): Promise<Variants> {
  const streaming = await contender.start({ gateways: step.gateways, ...options })
  const visitors = await startCommandProcess({ entry: 'bench/streams/visitors.ts' })
  try {
    await visitors.call({ do: 'load', file: streaming.visitorsFile, ports: streaming.ports })
    await streaming.publisher.call({ do: 'load', file: streaming.visitorsFile })
    await delay(1_000)
    return await step.run(createTurn(streaming, visitors), extent)
  } finally {
    await visitors.stop()
    await streaming.stop()
  }
}

function keep({ variants }: Measured, found: Variants, log: (line: string) => void): void {
  for (const [variant, figures] of found) {
    const before = variants.get(variant) ?? []
    variants.set(variant, [...before, figures])
    const text = Object.entries(figures).map(([name, value]) => `${name} ${Math.round(value * 100) / 100}`)
    log(`  ${variant}: ${text.join(', ')}`)
  }
}

function tableOf({ title, columns }: Step, measured: Map<Contender, Measured>): Table {
  const variants = new Set([...measured.values()].flatMap((found) => [...found.variants.keys()]))
  const ran = [...measured].filter(([, { failure }]) => failure === undefined)
  return {
    title,
    columns: ['', ...columns.map(([name]) => name)],
    rows: [...variants].flatMap((variant) =>
      ran.map(([{ name }, found]) => ({
        name: variants.size === 1 ? name : `${name}, ${variant}`,
        cells: columns.map(([, figure, unit, digits = 0]) => ({
          values: (found.variants.get(variant) ?? []).flatMap((figures) => figures[figure] ?? []),
          ...{ unit, digits, missing: '' },
        })),
      })),
    ),
    notes: [...measured].flatMap(([{ name }, { failure }]) => (failure ? [`${name} was not run: ${failure}.`] : [])),
  }
}

/**
 * Throws if the limit of open files is too low. Each stream needs one open file in each process.
 */
async function requireFiles(count: number): Promise<void> {
  const { stdout } = await promisify(execFile)('sh', ['-c', 'ulimit -n'])
  const allowed = stdout.trim() === 'unlimited' ? Number.POSITIVE_INFINITY : Number(stdout)
  if (allowed < count) {
    throw new Error(`${count} open files are needed and ${allowed} are allowed: raise it with \`ulimit -n ${count}\``)
  }
}
