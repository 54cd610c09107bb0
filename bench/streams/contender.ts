import type { CommandProcess, Running } from '../processes.ts'

/** One stream server of the comparison. */
export interface Contender {
  name: string
  /** Its environment and settings. */
  about: string
  /** Starts a fresh instance. Throws if it cannot run here. */
  start(options: StreamingOptions): Promise<Streaming>
}

export interface StreamingOptions {
  /** Number of servers for visitors. A contender that supports only one throws. */
  gateways: number
  /** Number of visitors, the same at every start. */
  visitors: number
  /** Folder for profiles of the service's processes. */
  profile?: string | undefined
}

export interface Streaming {
  /** Ports for visitors. */
  ports: number[]
  /** File of `Visitor`s, as JSON. */
  visitorsFile: string
  /** Takes `PublishCommand`s. */
  publisher: CommandProcess
  /** Servers for visitors. */
  gateways: Running[]
  /** All other processes except the publisher. */
  behind: Running[]
  /** Bytes in heap and external memory after a forced collection; undefined without a Node heap. */
  heapBytes(): Promise<{ gateway: number; behind: number } | undefined>
  /** Writes events of 256 bytes to the logs of visitors as fast as possible. */
  fill(request: { from: number; count: number; times: number }): Promise<void>
  stop(): Promise<void>
}

export interface Visitor {
  /** Channel of its events. */
  channel: string
  /** Request head of its stream, without the final empty line. */
  head: string
}
