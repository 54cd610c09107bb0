// Makes a service token: `npm run token -- --subject <name> --scopes <scope,…>`. It is printed, and kept nowhere.
import { parseArgs } from 'node:util'
import { readCoreConfig } from './config.ts'
import { createKeyring } from './keys/keyring.ts'
import { createAccess, knownScopes } from './rpc/access.ts'
import { settingsSecretKeys } from './secrets.ts'

const usage = `Makes a service token, signed with the first of SECRET_KEYS:

  npm run --silent token -- --subject <name> --scopes <scope,…> [--workspace <id>] [--days <n>]

  --subject    who it is for; it stands in the record of what is done with it
  --scopes     what it may do, of: ${knownScopes.join(', ')}
  --workspace  the one workspace that it may act for; all of them where left out
  --days       how long it is good, 90 where left out`

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
  if (unknown.length > 0) throw new Error(`there is no scope ${unknown.join(', ')}\n\n${usage}`)
  if (!(days > 0)) throw new Error('--days must be a number above 0')

  const keys = await settingsSecretKeys(readCoreConfig())
  const token = await createAccess(createKeyring(keys), Date.now).issue({
    subject: values.subject,
    scopes,
    lifetime: Math.ceil(days * 86_400),
    ...(values.workspace === undefined ? {} : { workspaceId: values.workspace }),
  })
  console.log(token)
}

main().catch((error: Error) => {
  console.error(`token: ${error.message}`)
  process.exit(1)
})
