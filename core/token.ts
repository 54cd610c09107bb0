// Creates a service token: `npm run token -- --subject <name> --scopes <scope,…>`. It is printed
// and not stored.
import { parseArgs } from 'node:util'
import { readCoreConfig } from './config.ts'
import { createKeyring } from './keys/keyring.ts'
import { createAccess, knownScopes } from './rpc/access.ts'
import { settingsSecretKeys } from './secrets.ts'

const usage = `Creates a service token, signed with the first key of SECRET_KEYS:

  npm run --silent token -- --subject <name> --scopes <scope,…> [--workspace <id>] [--days <n>]

  --subject    name of its user; audit records have it
  --scopes     its permissions, any of: ${knownScopes.join(', ')}
  --workspace  the workspace that it is limited to; default: all
  --days       its lifetime in days, default: 90`

async function main() {
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
  if (values.subject === '' || scopes.length === 0) throw new Error(`--subject and --scopes are missing\n\n${usage}`)
  if (unknown.length > 0) throw new Error(`unknown scope ${unknown.join(', ')}\n\n${usage}`)
  if (!(days > 0)) throw new Error('--days must be a number above 0')

  const keys = await settingsSecretKeys(readCoreConfig())
  const token = await createAccess(createKeyring(keys), Date.now).issue({
    subject: values.subject,
    scopes,
    lifetime: Math.ceil(days * 86_400),
    workspaceId: values.workspace,
  })
  console.log(token)
}

main().catch((error: Error) => {
  console.error(`token: ${error.message}`)
  process.exit(1)
})
