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

/** Parts by name, loaded on demand. */
export const parts: Record<string, () => Promise<Part>> = {
  send: async () => (await import('./send/part.ts')).sendPart,
  requests: async () => (await import('./requests/part.ts')).requestsPart,
  latency: async () => (await import('./latency/part.ts')).latencyPart,
  history: async () => (await import('./history/part.ts')).historyPart,
  retention: async () => (await import('./retention/part.ts')).retentionPart,
  search: async () => (await import('./search/part.ts')).searchPart,
  start: async () => (await import('./start/part.ts')).startPart,
  capacity: async () => (await import('./capacity/part.ts')).capacityPart,
  delivery: async () => (await import('./delivery/part.ts')).deliveryPart,
  queue: async () => (await import('./delivery/queue-part.ts')).queuePart,
  streams: async () => (await import('./streams/part.ts')).streamsPart,
}
