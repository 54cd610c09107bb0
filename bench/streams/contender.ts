import type { CommandProcess, StartedProcess } from '../../test/support/processes.ts'

/** One of the compared stream servers: the service or another server. */
export interface Contender {
  name: string
  /** Environment and settings of the server, printed below the tables. */
  about: string
  /** Starts a new instance. Throws if the server cannot run on this machine. */
  start(options: StreamingOptions): Promise<Streaming>
}

export interface StreamingOptions {
  /**
   * Number of servers for visitors. `start` throws if the contender does not support this number.
   */
  gateways: number
  /** Number of visitors. It is the same at every start. */
  visitors: number
  /** Folder for profiles of the service's processes. */
  profile?: string | undefined
}

export interface Streaming {
  /** Ports of the servers for visitors. */
  ports: number[]
  /** Path of a JSON file with an array of `Visitor`. */
  visitorsFile: string
  /** The publisher process. It executes `PublishCommand`s. */
  publisher: CommandProcess
  /** Processes that serve visitors. */
  gateways: StartedProcess[]
  /** Other processes of the contender, such as core and engine, except the publisher. */
  behind: StartedProcess[]
  /**
   * Returns the bytes in heap and external memory after a forced garbage collection. Returns
   * undefined if no process runs on Node.
   */
  heapBytes(): Promise<{ gateway: number; behind: number } | undefined>
  stop(): Promise<void>
}

export interface Visitor {
  /** Channel to which events for this visitor are published. */
  channel: string
  /** HTTP request head that opens the visitor's stream, without the final empty line. */
  head: string
}
