import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StartedProcess } from '../test/support/processes.ts'
import type { Cell, Table } from './table.ts'
import { type Usage, usageOf } from './usage.ts'

export interface PartOptions {
  /** Number of repeated measurements per contender. */
  rounds: number
  /** If true, the part runs the same steps with shorter durations and smaller sizes. */
  quick: boolean
  /** If true, steps that support it run with longer durations and larger sizes. */
  full: boolean
  /** Names of the steps and contenders to run. If empty, all run. */
  only: string[]
  /** Root folder of another checkout to measure beside this one. */
  against?: string | undefined
  /** Folder for CPU profiles of the service's processes. */
  profile?: string | undefined
  /** Logs progress. */
  log: (line: string) => void
}

/** One part of the bench: measures in rounds and returns its tables. */
export type Part = (options: PartOptions) => Promise<Table[]>

/** Figures of one measurement, by name. Times are in milliseconds if the name says nothing else. */
export type Figures = Record<string, number>

/** A system that the bench measures: the service in one of its layouts, or another system. */
export interface Contender<R extends Running = Running> {
  name: string
  /** Environment and settings, printed below the tables. */
  about: string
  /** Throws if the system cannot run on this machine. */
  start(options: StartOptions): Promise<R>
}

export interface StartOptions {
  profile?: string | undefined
  /** Visitors with a stream, and servers for them. Other parts than `streams` have no use for them. */
  visitors?: number
  gateways?: number
}

export interface Running {
  /** Processes whose processor time is measured, by role. The load process is not among them. */
  processes: Record<string, StartedProcess[]>
  /** Does one unit of work, such as a second of sends, and returns its figures. */
  work<Answer = Figures>(command: object): Promise<Answer>
  /** Resolves when the work that nobody waited for is done too. */
  settled(): Promise<void>
  /** Number of messages in the store. Missing for a system that keeps none. */
  stored?(): Promise<number>
  stop(): Promise<void>
}

/** A column: its title, the name of its figure, and the unit and digits of the figure. */
export type Column = [title: string, figure: string, unit: string, digits?: number]

/** What is measured of each contender. Steps with the same title share a table. */
export interface Step<R extends Running = Running> {
  name: string
  title: string
  columns: Column[]
  /** Returns the name of a row. Default: the contender’s, followed by the variant if there is one. */
  row?(contender: string, variant: string): string
  /** Servers and visitors that this step needs. */
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
  /** One entry for each round. */
  figures: Figures[]
}

/** What was measured. */
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
   * `once`: all contenders run beside each other from the first round to the last. `round`: each starts anew in each
   * round. `step`: also for each step. Default: `once`.
   */
  starts?: 'once' | 'round' | 'step'
}

/** Those whose names, or beginnings of names, `only` has. All, if it names none of them. */
function chosenOf<Item extends { name: string }>(items: Item[], only: string[], isWhole: boolean): Item[] {
  const isNamed = (name: string) => only.some((each) => (isWhole ? name === each : name.startsWith(each)))
  const chosen = items.filter(({ name }) => isNamed(name.toLowerCase()))
  return chosen.length > 0 ? chosen : items
}

/**
 * Measures the steps in rounds. Each round starts with another contender, so that the order favours none. A
 * contender that fails is left out from then on, and reported.
 */
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

/** Processor time and memory of each role's processes and their descendants. */
export async function usageByRole({ processes }: Pick<Running, 'processes'>): Promise<Map<string, Usage>> {
  const roles = Object.entries(processes)
  const usages = await Promise.all(roles.map(([, all]) => usageOf(all.map(({ pid }) => pid))))
  return new Map(roles.map(([role], index) => [role, usages[index]!]))
}

/**
 * Runs work and what is deferred, and adds the processor time of both: `cpuMicros` of each of `done`, the same by
 * role (`coreMicros`), `cpuSeconds`, and `residentMb` at the end. `settledMs` is the time until deferred work was done,
 * and `lost` is how many of `sent` are not in the store.
 */
export async function measured<F extends Figures>(running: Running, work: () => Promise<F>): Promise<F & Figures> {
  const storedBefore = await running.stored?.()
  const before = await usageByRole(running)
  const figures = await work()
  const answeredAt = performance.now()
  await running.settled()
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

/** One table for each title of a step. The notes stand below the last one. */
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

/**
 * The figures of rows divided by those of other rows in the same round. `nameOf` returns the name of a pair, or
 * undefined if it has no row.
 */
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

/** Temporary folders, removed when the bench exits. */
const scratchFolders: string[] = []

export async function scratchFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `service-bench-${name}-`))
  scratchFolders.push(folder)
  return folder
}

export async function removeScratchFolders(): Promise<void> {
  // Retries, because a stopping database engine may still write to its folder.
  for (const folder of scratchFolders) await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}

export const amount = (count: number): string => count.toLocaleString('en')
