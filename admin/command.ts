import type { Services } from './services.ts'

/** One flag of an administration command. */
export interface Flag {
  type: 'string' | 'boolean'
  description: string
  required?: true
  /** The flag may be repeated. */
  multiple?: true
  /** Field of the request that the flag sets, if it has another name. */
  field?: string
}

type ValueOf<F extends Flag> = F extends { multiple: true }
  ? string[]
  : F extends { type: 'boolean' }
    ? boolean
    : string

/** Values of the flags. Optional flags may be undefined. */
export type Values<F extends Record<string, Flag>> = {
  [K in keyof F]: F[K] extends { required: true } ? ValueOf<F[K]> : ValueOf<F[K]> | undefined
}

/** Default values of flags. They come from the demo on this machine. */
export interface DemoValues {
  gatewayUrl?: string
  workspaceId?: string
}

/** The process in which an administration command runs. */
export interface Host {
  /** Prints a line at once. */
  print(line: string): void
  /** Returns the signal that aborts when the user stops a command that runs until then. */
  untilStopped(): AbortSignal
  /** Secret that signs webhooks to an address on this machine. */
  webhookSecret: string
}

export interface Command<F extends Record<string, Flag> = Record<string, Flag>> {
  summary: string
  flags: F
  /** False for a command that needs neither a core nor a token. Its `services` cannot be called. */
  callsCore?: false
  /** True for a command that prints text as it arrives, and has no answer as JSON. */
  printsText?: true
  /**
   * Runs the administration command. Returns a message of a core, a JSON value, or lines that the
   * caller prints as they arrive. Returns undefined if it has printed everything.
   */
  run(services: Services, values: Values<F>, demo: DemoValues, host: Host): Promise<unknown> | AsyncIterable<string>
  /**
   * Returns the rows of the table that shows a list in the answer, which it gets as JSON. A command
   * without `rows` shows each field of the answer on its own line.
   */
  rows?(answer: never): string[][]
}

/** A group of related administration commands, by name. */
export type Group = Record<string, Command>

/** Defines an administration command. Infers the types of the flags that `run` gets. */
export function command<const F extends Record<string, Flag>>(definition: Command<F>): Command {
  return definition as unknown as Command
}
