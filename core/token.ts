// Prints a service token, which is not stored: `npm run make -- token --subject <name> --scopes <scope,…>`.
import { parseArgs } from 'node:util'
import { SettingError } from '../platform/settings/settings.ts'
import { runCommand } from '../platform/settings/start-faults.ts'
import { type CoreConfig, readCoreConfig, requireSettings } from './config.ts'
import { createKeyring, parseSecretKeys } from './keys/keyring.ts'
import { createAccess, knownScopes } from './workspaces/access.ts'

const usage = `Creates a service token, signed with the first key of SECRET_KEYS:

  npm run --silent make -- token --subject <name> --scopes <scope,…> [--workspace <id>] [--days <n>]

  --subject    name of its user; audit records have it
  --scopes     its permissions, any of: ${knownScopes.join(', ')};
               bots:act is for a bot, which may also read events and messages of its workspace
  --workspace  the workspace that it is limited to; default: all
  --days       its lifetime in days, default: 90`

/** Runs the command. `prepare` adds settings that the environment lacks, for example local secret keys. */
export const runToken = (prepare: (given: CoreConfig) => Promise<CoreConfig>) =>
  runCommand('token', () => printToken(prepare))

async function printToken(prepare: (given: CoreConfig) => Promise<CoreConfig>) {
  const { values } = parseArgs({
    options: {
      subject: { type: 'string', default: '' },
      scopes: { type: 'string', default: '' },
      workspace: { type: 'string' },
      days: { type: 'string', default: '90' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(usage)
  const scopes = values.scopes.split(',').filter(Boolean)
  const unknown = scopes.filter((scope) => !knownScopes.includes(scope))
  const days = Number(values.days)
  if (values.subject === '' || scopes.length === 0)
    throw new SettingError('--subject and --scopes are both required; --help lists the flags')
  if (unknown.length > 0) throw new SettingError(`unknown scope ${unknown.join(', ')}; --help lists the scopes`)
  if (!(days > 0)) throw new SettingError('--days must be a number above 0')

  const config = await prepare(readCoreConfig())
  requireSettings(config, 'SECRET_KEYS')
  const token = await createAccess(createKeyring(parseSecretKeys(config.SECRET_KEYS)), Date.now).issue({
    subject: values.subject,
    scopes,
    lifetime: Math.ceil(days * 86_400),
    workspaceId: values.workspace,
  })
  console.log(token)
}

if (import.meta.main) runToken(async (config) => config)
