// Writes docs/settings.md from the schemas that check the settings: `npm run make -- settings`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adminSettings } from '../../admin/config.ts'
import { coreSettings } from '../../core/config.ts'
import { deliverySettings } from '../../delivery/config.ts'
import { gatewaySettings } from '../../gateway/config.ts'
import type { SettingSchema } from '../../platform/settings/settings.ts'
import { serveSettings } from '../../serve/config.ts'
import { devSettings } from '../config.ts'

interface Entry {
  name: string
  schema: SettingSchema
  parts: string[]
}

function row({ name, schema, parts }: Entry) {
  const { default: fallback, description, minimum, maximum, anyOf } = schema
  const bounds = [
    minimum === undefined ? '' : `${minimum} or more`,
    maximum === undefined ? '' : `at most ${maximum}`,
  ].filter(Boolean)
  const allowed = anyOf ? anyOf.map((literal) => `\`${literal.const}\``).join(', ') : bounds.join(', ')
  const shown = fallback === undefined || fallback === '' ? '' : `\`${fallback}\``
  return `| \`${name}\` | ${parts.join(', ')} | ${shown} | ${allowed} | ${description ?? ''} |`
}

const table = (entries: Entry[]) =>
  ['| Setting | Part | Default | Allowed | Meaning |', '|---|---|---|---|---|', ...entries.map(row)].join('\n')

function entriesOf(parts: Record<string, { properties: object }>) {
  const entries = new Map<string, Entry>()
  for (const [part, { properties }] of Object.entries(parts))
    for (const [name, schema] of Object.entries(properties)) {
      const entry = entries.get(name)
      if (entry) entry.parts.push(part)
      else entries.set(name, { name, schema, parts: [part] })
    }
  return [...entries.values()]
}

/** What an operator of one server may want to set. */
const isUsual = ({ name }: Entry) =>
  /^(DOMAIN|MONGODB_URI|DATA_DIR|LOG_LEVEL|METRICS_PORT|BACKUP_.*|RETENTION_.*|OIDC_.*|SMTP_.*|SECRET_KEYS|WORKSPACE_SESSION_SECRET|DELIVERY_ALLOWED_CIDRS)$/.test(
    name,
  )

const isRare = ({ name, schema }: Entry) => schema.type === 'integer' && !name.endsWith('_PORT')

const all = entriesOf({
  serve: serveSettings,
  core: coreSettings,
  gateway: gatewaySettings,
  worker: deliverySettings,
  command: adminSettings,
})
const others = all.filter((entry) => !isUsual(entry))

export function settingsDocument(): string {
  return `# Settings

Environment variables, read once when a process starts. An invalid value stops the start with an error that names the setting. An empty
value counts as unset. \`NAME_FILE\` can name a file with the value of \`NAME\`, such as a mounted secret. This page is generated
from the schemas that check the settings (\`npm run make -- settings\`).

## One server

\`npm run serve\` needs \`MONGODB_URI\` and takes these from \`service.env\` ([one server](one-server.md)). That process has the
settings of the parts *serve*, *core*, *gateway* and *worker* (delivery worker). *Command* is \`npm run admin\`.

${table(all.filter(isUsual))}

By default it listens on this machine only (\`CORE_HOST\`, \`GATEWAY_HOST\`, \`METRICS_HOST\`) and trusts a proxy on it
(\`TRUST_PROXY=loopback\`). \`PUBLIC_URL\` follows \`DOMAIN\`.

## Parts apart

${table(others.filter((entry) => !isRare(entry)))}

## Rarely changed

Bounds and times. Their defaults fit nearly every installation.

${table(others.filter(isRare))}

## Development

\`npm start\`, \`npm run core\`, \`npm run migrate\` and \`npm run make -- token\` also have these.

${table(entriesOf({ development: devSettings }))}

## Secrets

The first \`npm run serve\`, \`npm start\` or \`npm run core\` creates \`DATA_DIR/secrets.json\`, readable by its owner only. It has the secret
keys, the gateway's service token and the key of workspace sessions. The delivery worker needs only its token, in
\`DATA_DIR/delivery.token\`. With \`NODE_ENV=production\`, \`npm run core\` creates nothing, and neither does \`core/main.ts\`: set
\`MONGODB_URI\`, \`SECRET_KEYS\`, the gateway's \`CORE_TOKEN\`, the worker's \`DELIVERY_TOKEN\` and the signer of workspace sessions
(\`WORKSPACE_SESSION_SECRET\` or \`WORKSPACE_SESSION_JWKS_URL\`). A missing setting stops the start.

To rotate \`SECRET_KEYS\`, add a new key at the front. It signs from then on; the old key is accepted until you remove it.
\`WORKSPACE_SESSION_SECRET\` works the same way: each secret of the list is accepted.
`
}

/** The names of all settings of all parts, for platform/settings/known-names.json. */
export function knownNames(): string {
  const all = [coreSettings, gatewaySettings, deliverySettings, adminSettings, serveSettings, devSettings]
  const names = [...new Set(all.flatMap(({ properties }) => Object.keys(properties)))].sort()
  return `${JSON.stringify(names, null, 2)}\n`
}

if (import.meta.main) {
  writeFileSync(join(import.meta.dirname, '../../docs/settings.md'), settingsDocument())
  writeFileSync(join(import.meta.dirname, '../../platform/settings/known-names.json'), knownNames())
}
