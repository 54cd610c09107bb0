import type { Obedient, Running } from '../processes.ts'

/** Something that holds visitors' streams and brings them events, being one way among several. */
export interface Contender {
  name: string
  /** What it runs on, and what it was set to. */
  about: string
  /** Starts all of it afresh. Errors: why it cannot run here. */
  start(options: StreamingOptions): Promise<Streaming>
}

export interface StreamingOptions {
  /** Servers that visitors may connect to; a contender that has one only says so by an error. */
  gateways: number
  /** How many visitors there are, the same at every start. */
  visitors: number
  /** Folder for the profiles of our own processes. */
  profile?: string | undefined
}

export interface Streaming {
  /** Where visitors connect. */
  ports: number[]
  /** File of `Visitor`s, as JSON. */
  visitorsFile: string
  /** Takes `PublishCommand`s. */
  publisher: Obedient
  /** What visitors connect to. */
  gateways: Running[]
  /** Whatever else works for it, the publisher not counted. */
  behind: Running[]
  /** Bytes in use in the heap and beside it after a forced collection; undefined where there is no such heap. */
  heapBytes(): Promise<{ gateway: number; behind: number } | undefined>
  /** Puts so many events of 256 bytes into the logs of visitors, as fast as it can. */
  fill(request: { from: number; count: number; times: number }): Promise<void>
  stop(): Promise<void>
}

export interface Visitor {
  /** Where its events are published. */
  channel: string
  /** Path and headers of its stream, as they go out, without the last empty line. */
  head: string
}
