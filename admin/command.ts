import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { DescMessage, DescMethodUnary, MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromDate } from '@bufbuild/protobuf/wkt'
import type { Transport } from '@connectrpc/connect'
import help from './help.json' with { type: 'json' }
import { columns } from './output.ts'
import type { Services } from './services.ts'

export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface Flag {
  description: string
  required?: true
  multiple?: true
  /** Name of its value, and of the field of the request that it sets, if it is another than that of the flag. */
  field?: string
  /** Converts the given text. A flag without `read` takes no text. */
  read?(text: string, flag: string): unknown
}

type Flags = Record<string, Flag>

type CamelCase<Name> = Name extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<CamelCase<Rest>>}` : Name
type FieldOf<Name, F> = F extends { field: infer Field extends string } ? Field : CamelCase<Name>
type OneOf<F> = F extends { read(text: string, flag: string): infer Value } ? Value : boolean
type ValueOf<F> = F extends { multiple: true } ? OneOf<F>[] : OneOf<F>

/** Values of the flags, by their fields. Optional flags may be undefined. */
export type Values<F extends Flags> = {
  [Name in keyof F as FieldOf<Name, F[Name]> & string]: F[Name] extends { required: true }
    ? ValueOf<F[Name]>
    : ValueOf<F[Name]> | undefined
}

const reading =
  <Value>(read: (text: string, flag: string) => Value) =>
  <const Field extends string | undefined = undefined>(description: string, field?: Field) => ({
    description,
    field: field as Field,
    read,
  })

export const text = reading((given) => given)
export const number = reading((given, flag) => {
  if (!/^\d{1,9}$/.test(given)) throw new UsageError(`--${flag} must be a whole number`)
  return Number(given)
})
export const time = reading((given, flag) => {
  const date = new Date(given)
  if (Number.isNaN(date.getTime())) throw new UsageError(`--${flag} must be an ISO time, like 2026-01-31T12:00:00Z`)
  return timestampFromDate(date)
})
export const choice = <Value>(named: Record<string, Value>) =>
  reading((given, flag): Value => {
    if (!Object.hasOwn(named, given)) throw new UsageError(`--${flag} must be one of ${Object.keys(named).join(', ')}`)
    return named[given]!
  })
export const url = (example: string) =>
  reading((given, flag) => {
    const found = URL.parse(given)
    if (found && /^https?:$/.test(found.protocol)) return found
    throw new UsageError(`--${flag} must be a URL, like ${example}`)
  })
export const whether = (description: string) => ({ description })

export const must = <F extends Flag>(flag: F) => ({ ...flag, required: true as const })
export const many = <F extends Flag>(flag: F) => ({ ...flag, multiple: true as const })

/** Default values of flags. They come from the demo on this machine. */
export interface DemoValues {
  gatewayUrl?: string
  workspaceId?: string
}

export interface Host {
  print(line: string): void
  /** Returns the signal that aborts when the user stops a command that runs until then. */
  untilStopped(): AbortSignal
  /** Secret that signs webhooks to an address on this machine. */
  webhookSecret: string
}

export interface Command<F extends Flags = Flags> {
  flags: F
  /** False for a command that needs neither a core nor a token. Its `services` cannot be called. */
  callsCore?: false
  /** True for a command that prints text as it arrives, and has no answer as JSON. */
  printsText?: true
  /** Returns a message of a core, a JSON value, or lines; undefined if it has printed everything. */
  run(services: Services, values: Values<F>, demo: DemoValues, host: Host): Promise<unknown> | AsyncIterable<string>
  /** Returns the rows of the table that shows the answer, given as JSON. Default: each field on its own line. */
  rows?(answer: never): string[][]
}

/** Commands by name. A group with one command may have an empty name for it. */
export type Group = Record<string, Command>

/** Defines a command. Infers the types of the values that `run` gets. */
export const command = <const F extends Flags>(
  flags: F,
  run: Command<F>['run'],
  more: Omit<Command<F>, 'flags' | 'run'> = {},
) => ({ flags, run, ...more }) as unknown as Command

/** Flags whose values are fields of a request. */
export type FlagsOf<I extends DescMessage, F extends Flags> = F &
  (Values<F> extends MessageInitShape<I> ? unknown : never)

/** Defines a command whose flags are the fields of a request. Its answer is that of the core. */
export const call = <const F extends Flags, I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  flags: FlagsOf<I, F>,
  more?: Omit<Command<F>, 'flags' | 'run'>,
) => command<F>(flags, ({ transport }, values) => callCore(transport, method, values), more)

/** Fields that the request does not have are not sent. */
export const callCore = async (transport: Transport, method: DescMethodUnary, request: object) =>
  (await transport.unary(method, undefined, undefined, undefined, { ...request })).message

export interface Call {
  command: Command
  values: Record<string, unknown>
  json: boolean
  /** Idempotency key: from --key, or a new one. */
  key: string
}

/** Returns the command with its values, or a help text. Errors: `UsageError`. */
export function readCall(args: string[], groups: Record<string, Group>): Call | { help: string } {
  const [groupName = ''] = args
  const [commandName = '', ...rest] = groups[groupName]?.[''] ? ['', ...args.slice(1)] : args.slice(1)
  if (args.includes('--help') || groupName === '') return { help: helpFor(groups, groupName, commandName) }
  const command = groups[groupName]?.[commandName]
  if (!command) throw new UsageError(`there is no command ${JSON.stringify(`${groupName} ${commandName}`.trim())}`)
  const { json = false, key = randomUUID(), ...given } = parseFlags(rest, command.flags)
  const flags = Object.entries(command.flags)
  const missing = flags.filter(([name, { required }]) => required && given[name] === undefined)
  if (missing.length > 0) throw new UsageError(`missing: ${missing.map(([name]) => `--${name}`).join(', ')}`)
  if (json && command.printsText) throw new UsageError('this command prints text; it has no --json')
  const values = Object.fromEntries(
    flags.map(([name, flag]) => [fieldOf(name, flag), readGiven(name, flag, given[name])]),
  )
  return { command, values, json: json === true, key: String(key) }
}

type Given = string | boolean | undefined

function parseFlags(args: string[], flags: Flags) {
  const options = Object.entries(flags).map(([name, { read, multiple = false }]) => [
    name,
    { type: read ? 'string' : 'boolean', multiple },
  ])
  try {
    return parseArgs({
      args,
      options: { ...Object.fromEntries(options), json: { type: 'boolean' }, key: { type: 'string' } },
    }).values as Record<string, Given | Given[]>
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function readGiven(name: string, flag: Flag, given: Given | Given[]): unknown {
  if (Array.isArray(given)) return given.map((each) => readGiven(name, flag, each))
  return typeof given === 'string' ? flag.read?.(given, name) : given
}

export const fieldOf = (name: string, { field }: Flag) => field ?? camelCase(name)

const camelCase = (name: string) => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Returns the flag that sets a field, by the path of an issue of the request: `/eventTypes/0`. */
export function flagAt(path: string, flags: Flags): string | undefined {
  const fields = path.split('/').filter((part) => part !== '' && !/^\d+$/.test(part))
  return Object.keys(flags).find((flag) => {
    const name = camelCase(flag)
    return [fieldOf(flag, flags[flag]!), `${name}s`, `${name}Id`].some((each) => fields.includes(each))
  })
}

const summaryOf = (group: string, name: string) => (help as Record<string, Record<string, string>>)[group]![name]!

const jsonFlag = ['--json', 'print the answer as JSON']
const keyFlag = ['--key …', 'idempotency key: a change that is repeated with its key within 24 hours is made once']

function helpFor(groups: Record<string, Group>, groupName: string, commandName: string) {
  const command = groups[groupName]?.[commandName]
  if (command) {
    const flags = Object.entries(command.flags).map(([name, { read, required, description }]) => [
      `--${name}${read ? ' …' : ''}`,
      `${description}${required ? ' (required)' : ''}`,
    ])
    const all = [...flags, ...(command.printsText ? [] : [jsonFlag]), keyFlag]
    const words = `${groupName} ${commandName}`.trim()
    return `${summaryOf(groupName, commandName)}.\n\n  npm run admin -- ${words} [flags]\n\n${columns(all)}`
  }
  const shown = groups[groupName] ? { [groupName]: groups[groupName] } : groups
  const commands = Object.entries(shown).flatMap(([group, members]) =>
    Object.keys(members).map((name) => [`${group} ${name}`.trim(), summaryOf(group, name)]),
  )
  return `Administers the service: npm run admin -- <command> [flags]

${columns(commands)}

Add --help to a command to see its flags. CORE_URL names the core, and SERVICE_TOKEN is the token for it. If the service
runs on this machine, both are found in DATA_DIR.`
}
