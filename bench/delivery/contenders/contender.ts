import type { StartedProcess } from '../../../test/support/processes.ts'

/** Number of destinations that receive the deliveries. */
export const destinations = 50
/** Maximum number of concurrent requests to the destinations, equal for all contenders. */
export const concurrency = 50
/** Size of a lead, which is also the size of the request body. */
export const payloadBytes = 2_048

/** One of the compared delivery systems: the service or another job queue. */
export interface Contender {
  name: string
  /** Environment and settings of the system, printed below the tables. */
  about: string
  /**
   * Starts a new instance that sends to `receiverPort`. Throws if the system cannot run on this
   * machine.
   */
  start(receiverPort: number, profile?: string): Promise<Delivering>
}

export interface Delivering {
  /**
   * Enqueues `count` deliveries as fast as possible, spread evenly over the destinations, in bulk
   * if supported.
   */
  fill(count: number): Promise<void>
  /** Enqueues `count` deliveries for one destination. */
  fillOne(count: number): Promise<void>
  /**
   * Enqueues one delivery per call, with `inFlight` concurrent calls. Returns deliveries per
   * second.
   */
  enqueue(count: number, inFlight: number): Promise<number>
  /** Enqueues at a fixed rate. Returns each delivery's ID and the start time of its call. */
  steady(rate: number, seconds: number): Promise<[id: string, at: number][]>
  worker(): StartedProcess
  /** Time in milliseconds after which a worker that hangs gets no more deliveries. */
  goneAfterMs?: number
  startWorker(): Promise<void>
  /**
   * Processes whose CPU time and memory are measured. The producer of a job queue is among them: it
   * adds the job to the queue, which is the work of the core in our case. Our producer only calls the core.
   */
  pids(): number[]
  /** Resolves when the results of all attempts are stored. */
  settled(): Promise<void>
  stop(): Promise<void>
}
