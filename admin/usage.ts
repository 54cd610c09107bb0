import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Command, Flag, Group } from './command.ts'

/** Error: the arguments of the command are invalid. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface Call {
  command: Command
  values: Record<string, string | boolean | (string | boolean)[] | undefined>
  json: boolean
  /** Idempotency key of the administration command: from --key, or a new one. */
  key: string
}

/**
 * Returns the entry of `named` whose name the user gave. Errors: `UsageError` that lists the
 * allowed names.
 */
export function oneOf<T>(flag: string, given: string, named: Record<string, T>): T {
  const found = Object.hasOwn(named, given) ? named[given] : undefined
  if (found === undefined) throw new UsageError(`--${flag} must be one of ${Object.keys(named).join(', ')}`)
  return found
}

/** Returns the URL that the user gave for a flag. Errors: `UsageError` with an example. */
export function urlOf(flag: string, given: string, example: string): URL {
  const url = URL.parse(given)
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new UsageError(`--${flag} must be a URL, like ${example}`)
}

/**
 * Parses the arguments. Returns the administration command with its flags, or a help text. Errors:
 * `UsageError`.
 */
export function readCall(args: string[], entries: Record<string, Group | Command>): Call | { help: string } {
  const groups = groupsOf(entries)
  const [groupName = ''] = args
  // `groupsOf` turns a command without a group into a group with one command, whose name is empty.
  const [commandName = '', ...rest] = groups[groupName]?.[''] ? ['', ...args.slice(1)] : args.slice(1)
  if (args.includes('--help') || groupName === '') return { help: helpFor(groups, groupName, commandName) }
  const command = groups[groupName]?.[commandName]
  if (!command) throw new UsageError(`there is no command ${JSON.stringify(`${groupName} ${commandName}`.trim())}`)
  const { json = false, key = randomUUID(), ...values } = parseFlags(rest, command.flags)
  const missing = Object.entries(command.flags).filter(([name, { required }]) => required && values[name] === undefined)
  if (missing.length > 0) throw new UsageError(`missing: ${missing.map(([name]) => `--${name}`).join(', ')}`)
  if (json && command.printsText) throw new UsageError('this command prints text; it has no --json')
  return { command, values, json: json === true, key: String(key) }
}

/** Returns the flag that sets a field, by the path of an issue of the request: `/eventTypes/0`. */
export function flagAt(path: string, flags: Record<string, Flag>): string | undefined {
  const fields = path.split('/').filter((part) => part !== '' && !/^\d+$/.test(part))
  return Object.keys(flags).find((flag) => {
    const name = flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    return [flags[flag]?.field ?? name, `${name}s`, `${name}Id`].some((each) => fields.includes(each))
  })
}

const groupsOf = (entries: Record<string, Group | Command>): Record<string, Group> =>
  Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, isCommand(entry) ? { '': entry } : entry]))

const isCommand = (entry: Group | Command): entry is Command => typeof entry.run === 'function'

function parseFlags(args: string[], flags: Record<string, Flag>) {
  const options = Object.entries(flags).map(([name, { type, multiple = false }]) => [name, { type, multiple }])
  try {
    return parseArgs({
      args,
      options: { ...Object.fromEntries(options), json: { type: 'boolean' }, key: { type: 'string' } },
    }).values as Record<string, string | boolean | (string | boolean)[]>
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** Flags that administration commands accept. */
const jsonFlag = ['--json', 'print the answer as JSON']
const keyFlag = ['--key …', 'idempotency key: a change that is repeated with its key within 24 hours is made once']

function helpFor(groups: Record<string, Group>, groupName: string, commandName: string): string {
  const command = groups[groupName]?.[commandName]
  if (command) {
    const flags = Object.entries(command.flags).map(([name, { type, required, description }]): [string, string] => [
      `--${name}${type === 'string' ? ' …' : ''}`,
      `${description}${required ? ' (required)' : ''}`,
    ])
    const all = [...flags, ...(command.printsText ? [] : [jsonFlag]), keyFlag]
    const words = `${groupName} ${commandName}`.trim()
    return `${command.summary}.\n\n  npm run admin -- ${words} [flags]\n\n${columns(all)}`
  }
  const shown = groups[groupName] ? { [groupName]: groups[groupName] } : groups
  const commands = Object.entries(shown).flatMap(([group, members]) =>
    Object.entries(members).map(([name, { summary }]) => [`${group} ${name}`.trim(), summary]),
  )
  return `Administers the service: npm run admin -- <command> [flags]

${columns(commands)}

Add --help to a command to see its flags. CORE_URL names the core, and SERVICE_TOKEN is the token for it. If the service
runs on this machine, both are found in DATA_DIR.`
}

/** Aligns rows of text in columns. */
export function columns(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return rows
    .map((row) => `  ${row.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join('  ')}`.trimEnd())
    .join('\n')
}
