import { createHmac } from 'node:crypto'
import { isMessage, toJson } from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { createAuthorizedTransport } from '../core-client/authorized-transport.ts'
import { coreTlsFiles } from '../core-client/core-tls.ts'
import { createCoreTransport } from '../core-client/core-transport.ts'
import { errorInfoOf } from '../core-client/error-info.ts'
import { tlsFaultOf } from '../core-client/system-codes.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { type Call, fieldOf, flagAt, readCall, UsageError } from './command.ts'
import { conversations } from './commands/conversations.ts'
import { deliveries } from './commands/deliveries.ts'
import { hooks, subscriptions } from './commands/destinations.ts'
import { events } from './commands/events.ts'
import { doctor, explain } from './commands/faults.ts'
import { identitySecrets, installations } from './commands/installations.ts'
import { suppressions } from './commands/suppressions.ts'
import { visitors } from './commands/visitors.ts'
import { connections, consoleLink, tokens, workspaces } from './commands/workspaces.ts'
import { readAdminConfig } from './config.ts'
import { createKeyedTransport, UnknownOutcomeError } from './keyed-transport.ts'
import { resolveNames } from './names.ts'
import { columns, formatValue } from './output.ts'
import { createServices, type Services, schemas } from './services.ts'

export const groups = {
  workspaces,
  connections,
  installations,
  'identity-secrets': identitySecrets,
  subscriptions,
  hooks,
  conversations,
  deliveries,
  events,
  tokens,
  visitors,
  suppressions,
  'console-link': { '': consoleLink },
  doctor: { '': doctor },
  explain: { '': explain },
}

interface AdminIo {
  args: string[]
  env?: NodeJS.ProcessEnv
  print(text: string): void
  printError(text: string): void
  untilStopped?(): AbortSignal
}

/** Runs the command. Returns the exit status: 2 for invalid arguments or settings, 1 for other errors. */
export async function runAdmin(io: AdminIo): Promise<number> {
  let call: Call | undefined
  try {
    const read = readCall(io.args, groups)
    if ('help' in read) io.print(read.help)
    else {
      call = read
      await run(call, io)
    }
    return 0
  } catch (error) {
    const { text, status } = describeError(error, call)
    io.printError(`admin: ${text}`)
    return status
  }
}

async function run(call: Call, { env, print, untilStopped = () => new AbortController().signal }: AdminIo) {
  const { command, json } = call
  const withoutCore = { services: {} as Services, values: call.values, demo: {}, webhookSecret: '' }
  const given = command.callsCore === false ? withoutCore : await withCore(call, env)
  const { services, values, demo, webhookSecret } = given
  const answer = command.run(services, values as never, demo, { print, untilStopped, webhookSecret })
  if (Symbol.asyncIterator in answer) {
    for await (const line of answer) print(line)
    return
  }
  const message = await answer
  const value = isMessage(message) ? toJson(schemas.getMessage(message.$typeName)!, message) : message
  if (value === undefined) return
  if (json) return print(JSON.stringify(value, null, 2))
  const rows = command.rows?.(value as never)
  print(rows ? columns(rows) : formatValue(value))
}

async function withCore({ values, key }: Call, env: NodeJS.ProcessEnv | undefined) {
  const config = readAdminConfig(env)
  const transport = createCoreTransport(config.CORE_URL, coreTlsFiles(config))
  const writes = createKeyedTransport(createAuthorizedTransport(transport, config.SERVICE_TOKEN), key)
  const services = createServices(writes)
  const resolved = await resolveNames(services, values, config.demo)
  // The secret is the same for each use of a service token, which it does not reveal.
  const derived = createHmac('sha256', config.SERVICE_TOKEN).update('webhooks of events listen').digest('base64')
  const webhookSecret = config.WEBHOOK_SECRET || `whsec_${derived}`
  return { services, values: resolved, demo: config.demo, webhookSecret }
}

function describeError(error: unknown, call: Call | undefined) {
  if (error instanceof UsageError || error instanceof SettingError) return { text: error.message, status: 2 }
  return { text: error instanceof UnknownOutcomeError ? error.message : answerOf(error, call), status: 1 }
}

function answerOf(error: unknown, call: Call | undefined) {
  const { rawMessage, code } = ConnectError.from(error)
  const info = error instanceof ConnectError ? errorInfoOf(error) : undefined
  if (info) {
    const issues = info.issues.map(({ path, rule }) => `\n  ${path} ${rule}${call ? aboutFlag(path, call) : ''}`)
    const missing = info.code === 'NotFound' && call ? aboutIds(call) : ''
    return `the core answered ${info.code}${missing}${issues.join('')}`
  }
  const tlsFault = tlsFaultOf(error)
  if (tlsFault) return tlsFault
  const text = code === Code.DeadlineExceeded ? 'the core has not answered in time' : rawMessage
  const isSilent = code === Code.Unavailable || code === Code.DeadlineExceeded
  return isSilent ? `${text}. Check CORE_URL, and whether GET /readyz of the core answers` : text
}

function aboutFlag(path: string, { command: { flags } }: Call) {
  const flag = flagAt(path, flags)
  return flag === undefined ? '' : ` (--${flag}: ${flags[flag]?.description})`
}

const idFormat = /^[a-z]+_\w+$/

function aboutIds({ values, command: { flags } }: Call) {
  const given = Object.entries(flags).map(([name, flag]) => [name, values[fieldOf(name, flag)]])
  const ids = given.filter(([, value]) => typeof value === 'string' && idFormat.test(value))
  if (ids.length === 0) return ''
  return `. Check ${ids.map(([flag, id]) => `--${flag} ${id}`).join(', ')}, and whether the token may read it`
}
