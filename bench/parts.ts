import type { Table } from './table.ts'

export interface PartOptions {
  /** How often each contender takes its turn. */
  rounds: number
  /** A shorter run with the same steps, to see whether it works. */
  quick: boolean
  /** Names of steps or contenders; empty for all. */
  only: string[]
  /** Folder for the CPU profiles of our own processes. */
  profile?: string
  /** Tells whoever watches how far it is. */
  say: (line: string) => void
}

/** One part of the bench: starts what it needs, measures in rounds, gives its tables back. */
export type Part = (options: PartOptions) => Promise<Table[]>

/** By name, loaded when it is asked for. */
export const parts: Record<string, () => Promise<Part>> = {
  send: async () => (await import('./send/part.ts')).sendPart,
  latency: async () => (await import('./latency/part.ts')).latencyPart,
  history: async () => (await import('./history/part.ts')).historyPart,
  start: async () => (await import('./start/part.ts')).startPart,
  capacity: async () => (await import('./capacity/part.ts')).capacityPart,
  delivery: async () => (await import('./delivery/part.ts')).deliveryPart,
}
