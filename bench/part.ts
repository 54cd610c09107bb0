import type { Table } from './table.ts'

export interface PartOptions {
  /** Number of repeated measurements per contender. */
  rounds: number
  /** If true, the part runs the same steps with shorter durations and smaller sizes. */
  quick: boolean
  /** If true, steps that support it run with longer durations and larger sizes. */
  full: boolean
  /** Names of the steps or contenders to run. If empty, all run. */
  only: string[]
  /** Root folder of another checkout to measure beside this one. */
  against?: string
  /** Folder for CPU profiles of the service's processes. */
  profile?: string
  /** Logs progress. */
  log: (line: string) => void
}

/** One part of the bench: starts its processes, measures in rounds and returns its tables. */
export type Part = (options: PartOptions) => Promise<Table[]>
