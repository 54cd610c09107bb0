import type { Services } from './services.ts'

/** One flag of a command. */
export interface Flag {
  type: 'string' | 'boolean'
  description: string
  required?: true
  /** May be given several times. */
  multiple?: true
}

type ValueOf<F extends Flag> = F extends { multiple: true }
  ? string[]
  : F extends { type: 'boolean' }
    ? boolean
    : string

/** What the flags were given; those that need not be may be missing. */
export type Values<F extends Record<string, Flag>> = {
  [K in keyof F]: F[K] extends { required: true } ? ValueOf<F[K]> : ValueOf<F[K]> | undefined
}

export interface Command<F extends Record<string, Flag> = Record<string, Flag>> {
  summary: string
  flags: F
  /** What is printed: a value as JSON has it, or lines as they come. */
  run(services: Services, values: Values<F>): Promise<unknown> | AsyncIterable<string>
}

/** Commands that belong together, by their names. */
export type Group = Record<string, Command>

/** A command whose `run` knows its own flags. */
export function command<const F extends Record<string, Flag>>(definition: Command<F>): Command {
  return definition as unknown as Command
}
