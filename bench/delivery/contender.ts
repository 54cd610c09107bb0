import type { Running } from '../processes.ts'

/** Number of destinations. */
export const destinations = 50
/** Concurrent requests of each contender. */
export const concurrency = 50
/** Size of the lead, and so of the body. */
export const payloadBytes = 2_048

/** One delivery system of the comparison. */
export interface Contender {
  name: string
  /** Its environment and settings. */
  about: string
  /** Starts a fresh instance. Throws if it cannot run here. */
  start(receiverPort: number, profile?: string): Promise<Delivering>
}

export interface Delivering {
  /** Fills the queue as fast as possible, evenly over the destinations, in bulk if supported. */
  fill(count: number): Promise<void>
  /** Enqueues one by one with `inFlight` concurrent calls. Returns deliveries per second. */
  enqueue(count: number, inFlight: number): Promise<number>
  /** Enqueues at a fixed rate. Returns the start time of each call by delivery ID. */
  steady(rate: number, seconds: number): Promise<[id: string, at: number][]>
  worker(): Running
  startWorker(): Promise<void>
  /** All processes except the receiver and the producer. */
  pids(): number[]
  /** Resolves when all results are stored. */
  settled(): Promise<void>
  stop(): Promise<void>
}
