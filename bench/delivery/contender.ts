import type { Running } from '../processes.ts'

/** Destinations, by which the work is divided. */
export const destinations = 50
/** Requests at once, of each contender. */
export const concurrency = 50
/** Of the lead, which makes the body. */
export const payloadBytes = 2_048

/** Something that delivers, being one way among several to do the same work. */
export interface Contender {
  name: string
  /** What it runs on, and what it was set to. */
  about: string
  /** Starts all of it afresh. Errors: why it cannot run here. */
  start(receiverPort: number, profile?: string): Promise<Delivering>
}

export interface Delivering {
  /** Puts so many into its queue as fast as it can, fairly over the destinations; when it takes them in bulk, so. */
  fill(count: number): Promise<void>
  /** One by one, `inFlight` at once: deliveries a second. */
  enqueue(count: number, inFlight: number): Promise<number>
  /** So many a second, one by one: when each began to be put in, by the id that its receiver sees. */
  steady(rate: number, seconds: number): Promise<[id: string, at: number][]>
  worker(): Running
  startWorker(): Promise<void>
  /** Every process but the receiver and who puts work in. */
  pids(): number[]
  /** Resolves when everything is in the books. */
  settled(): Promise<void>
  stop(): Promise<void>
}
