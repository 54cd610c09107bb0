import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { childrenOf } from '../test/support/proc.ts'
import type { StartedProcess } from '../test/support/processes.ts'
import type { Cell, Table } from './table.ts'

export interface PartOptions {
  rounds: number
  /** Whether steps have shorter durations and smaller sizes. */
  quick: boolean
  /** Whether steps have longer durations and larger sizes. */
  full: boolean
  /** Names of steps and contenders to run. If empty, all run. */
  only: string[]
  /** Another checkout to measure beside this one. */
  against?: string | undefined
  /** Folder for CPU profiles. */
  profile?: string | undefined
  log: (line: string) => void
}

export type Part = (options: PartOptions) => Promise<Table[]>

/** Figures of one measurement, by name. Times are in milliseconds if the name says nothing else. */
export type Figures = Record<string, number>

export interface Contender<R extends Running = Running> {
  name: string
  /** Environment and settings, printed below the tables. */
  about: string
  /** Throws if the system cannot run on this machine. */
  start(options: StartOptions): Promise<R>
}

export interface StartOptions {
  profile?: string | undefined
  /** Visitors with a stream, and servers for them, in the part `streams`. */
  visitors?: number
  gateways?: number
}

export interface Running {
  /** Processes whose processor time is measured, by role. The load process is not among them. */
  processes: Record<string, StartedProcess[]>
  work<Answer = Figures>(command: object): Promise<Answer>
  /** Resolves when the work that nobody waited for is done. Missing if there is none. */
  settled?(): Promise<void>
  /** Number of messages in the store. Missing for a system that keeps none. */
  stored?(): Promise<number>
  stop(): Promise<void>
}

export type Column = [title: string, figure: string, unit: string, digits?: number]

/** Steps with the same title share a table. */
export interface Step<R extends Running = Running> {
  name: string
  title: string
  columns: Column[]
  /** Returns the name of a row. Default: the contender’s name, followed by the variant. */
  row?(contender: string, variant: string): string
  start?: StartOptions
  /** Whether the contender can take part. Default: each can. */
  isFor?(contender: Contender): boolean
  /** Returns figures, or figures by variant. */
  run(running: R): Promise<Figures | Map<string, Figures>>
}

interface Row {
  step: Step
  contender: Contender
  variant: string
  figures: Figures[]
}

export interface Results {
  steps: Step[]
  rows: Row[]
  notes: string[]
}

interface Comparison<R extends Running> {
  contenders: Contender<R>[]
  steps: Step<R>[]
  options: PartOptions
  /** Done once with each started contender. Its figures are discarded. */
  warmUp?(running: R): Promise<unknown>
  /**
   * `once`: all contenders run beside each other in all rounds. `round`: each starts anew in each round.
   * `step`: in each step.
   */
  starts?: 'once' | 'round' | 'step'
}

/** Returns the items that `only` names; all, if it names none of them. */
function chosenOf<Item extends { name: string }>(items: Item[], only: string[], isWhole: boolean): Item[] {
  const isNamed = (name: string) => only.some((each) => (isWhole ? name === each : name.startsWith(each)))
  const chosen = items.filter(({ name }) => isNamed(name.toLowerCase()))
  return chosen.length > 0 ? chosen : items
}

/** Measures in rounds. Each starts with another contender. One that fails is left out from then on, and reported. */
export async function compare<R extends Running>(comparison: Comparison<R>): Promise<Results> {
  const { options, warmUp, starts = 'once' } = comparison
  const { rounds, profile, log } = options
  const only = options.only.map((name) => name.toLowerCase())
  const steps = chosenOf(comparison.steps, only, true)
  let left = chosenOf(comparison.contenders, only, false)
  const results: Results = {
    steps: steps as unknown as Step[],
    rows: [],
    notes: left.map(({ name, about }) => `${name}: ${about}.`),
  }
  const running = new Map<Contender, R>()
  const turns = starts === 'round' ? [steps] : steps.map((step) => [step])

  const started = async (contender: (typeof left)[number], start: StartOptions = {}) => {
    const found = running.get(contender)
    if (found) return found
    const begun = await contender.start({ profile, ...start })
    running.set(contender, begun)
    await warmUp?.(begun)
    return begun
  }
  const stop = async (contender: Contender) => {
    await running.get(contender)?.stop()
    running.delete(contender)
  }
  const attempt = async (contender: Contender, act: () => Promise<unknown>) => {
    try {
      await act()
    } catch (error) {
      left = left.filter((each) => each !== contender)
      results.notes.push(`${contender.name} was not run: ${(error as Error).message}.`)
      log(`${contender.name}: ${(error as Error).message}`)
      await stop(contender)
    }
  }
  const keep = (step: Step<R>, contender: Contender, variant: string, figures: Figures) => {
    const isRow = (row: Row) => row.step === (step as unknown) && row.contender === contender && row.variant === variant
    const found = results.rows.find(isRow)
    if (found) found.figures.push(figures)
    else results.rows.push({ step: step as unknown as Step, contender, variant, figures: [figures] })
    const texts = Object.entries(figures).map(([name, value]) => `${name} ${Math.round(value * 100) / 100}`)
    log(`${step.name}, ${[contender.name, variant].filter(Boolean).join(', ')}: ${texts.join(', ')}`)
  }

  if (starts === 'once') for (const contender of [...left]) await attempt(contender, () => started(contender))
  for (let round = 0; round < rounds; round += 1) {
    for (const turn of turns) {
      for (const contender of left.map((_, index) => left[(index + round) % left.length]!)) {
        await attempt(contender, async () => {
          for (const step of turn.filter(({ isFor = () => true }) => isFor(contender))) {
            const found = await step.run(await started(contender, step.start))
            const variants = found instanceof Map ? found : new Map([['', found]])
            for (const [variant, figures] of variants) keep(step, contender, variant, figures)
          }
          if (starts !== 'once') await stop(contender)
        })
      }
    }
  }
  for (const contender of running.keys()) await stop(contender)
  // A table shows the contenders in their order, whichever began a round.
  const place = ({ step, contender }: Results['rows'][number]) =>
    results.steps.indexOf(step) * 100 + comparison.contenders.indexOf(contender as never)
  results.rows.sort((one, other) => place(one) - place(other))
  return results
}

/** Returns the usage of each role's processes and their descendants. */
export async function usageByRole({ processes }: Pick<Running, 'processes'>): Promise<Map<string, Usage>> {
  const roles = Object.entries(processes)
  const usages = await Promise.all(roles.map(([, all]) => usageOf(all.map(({ pid }) => pid))))
  return new Map(roles.map(([role], index) => [role, usages[index]!]))
}

/**
 * Runs work and what it defers, and adds the processor time of both: `cpuMicros` of each of `done`, the same by role
 * (`coreMicros`), and `cpuSeconds`. Also adds `residentMb` at the end, `settledMs` until deferred work was done, and
 * how many of `sent` are `lost`.
 */
export async function measured<F extends Figures>(running: Running, work: () => Promise<F>): Promise<F & Figures> {
  const storedBefore = await running.stored?.()
  const before = await usageByRole(running)
  const figures = await work()
  const answeredAt = performance.now()
  await running.settled?.()
  const settledMs = performance.now() - answeredAt
  const after = await usageByRole(running)
  const stored = await running.stored?.()
  const { done = figures.count ?? 1 } = figures
  const spent = [...after].map(([role, { cpuSeconds }]) => [role, cpuSeconds - before.get(role)!.cpuSeconds] as const)
  const cpuSeconds = spent.reduce((sum, [, seconds]) => sum + seconds, 0)
  const residentMb = [...after.values()].reduce((sum, usage) => sum + usage.residentMb, 0)
  const byRole = Object.fromEntries(spent.map(([role, seconds]) => [`${role}Micros`, (seconds / done) * 1e6]))
  const { sent } = figures
  const lost = stored === undefined || sent === undefined ? undefined : { lost: sent - (stored - storedBefore!) }
  return { ...figures, ...byRole, ...lost, settledMs, cpuSeconds, cpuMicros: (cpuSeconds / done) * 1e6, residentMb }
}

const cellOf = ([, figure, unit, digits = 0]: Column, figures: Figures[]): Cell => ({
  values: figures.flatMap((each) => each[figure] ?? []),
  unit,
  digits,
  missing: '',
})

const nameOf = ({ step, contender, variant }: Row) =>
  step.row?.(contender.name, variant) ?? [contender.name, variant].filter(Boolean).join(', ')

/** Returns one table for each title. The notes stand below the last one. */
export function tablesOf({ steps, rows, notes }: Results): Table[] {
  const tables = [...Map.groupBy(steps, ({ title }) => title)].map(([title, [first]]) => ({
    title,
    columns: ['', ...first!.columns.map(([name]) => name)],
    rows: rows
      .filter(({ step }) => step.title === title)
      .map((row) => ({ name: nameOf(row), cells: row.step.columns.map((column) => cellOf(column, row.figures)) })),
    notes: [] as string[],
  }))
  tables.at(-1)?.notes.push(...notes)
  return tables
}

/** Divides figures by those of other rows in the same round. `nameOf` names a pair that has a row. */
export function ratioTable(
  { rows }: Results,
  title: string,
  columns: Column[],
  nameOf: (of: Row, to: Row) => string | false,
): Table {
  const cell = ([, figure]: Column, of: Row, to: Row): Cell => ({
    values: of.figures.map((each, round) => each[figure]! / (to.figures[round]?.[figure] ?? Number.NaN)),
    unit: '',
    digits: 2,
  })
  const pairs = rows.flatMap((of) => rows.map((to) => ({ of, to, name: of !== to && nameOf(of, to) })))
  return {
    title,
    columns: ['', ...columns.map(([name]) => name)],
    rows: pairs.flatMap(({ of, to, name }) =>
      name ? [{ name, cells: columns.map((column) => cell(column, of, to)) }] : [],
    ),
    notes: [],
  }
}

const scratchFolders: string[] = []

export async function scratchFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `service-bench-${name}-`))
  scratchFolders.push(folder)
  return folder
}

export async function removeScratchFolders(): Promise<void> {
  // A stopping engine may still write to its folder.
  for (const folder of scratchFolders) await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}

export const amount = (count: number): string => count.toLocaleString('en')

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100
const pageBytes = 4096

export interface Usage {
  cpuSeconds: number
  residentMb: number
}

/** Returns the usage of processes and their running descendants. */
export async function usageOf(pids: number[]): Promise<Usage> {
  const usages = await Promise.all(
    pids.map(async (pid) => [await usageOfOne(pid), await usageOf(await childrenOf(pid).catch(() => []))]),
  )
  const sum = (figure: keyof Usage) => usages.flat().reduce((total, usage) => total + usage[figure], 0)
  return { cpuSeconds: sum('cpuSeconds'), residentMb: sum('residentMb') }
}

async function usageOfOne(pid: number): Promise<Usage> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name may contain brackets (proc(5)), so the other fields begin after the last one.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  // Processor time also of children that have ended, and memory in pages.
  const ticks = fields.slice(11, 15).reduce((sum, each) => sum + each, 0)
  const pages = fields[21] ?? 0
  return { cpuSeconds: ticks / ticksPerSecond, residentMb: (pages * pageBytes) / 1e6 }
}
