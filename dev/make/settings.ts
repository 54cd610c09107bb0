// Writes the tables of docs/settings.md from the schemas that check the settings: `npm run make -- settings`.
import { adminSettings } from '../../admin/config.ts'
import { coreSettings } from '../../core/config.ts'
import { deliverySettings } from '../../delivery/config.ts'
import { gatewaySettings } from '../../gateway/config.ts'
import type { SettingSchema } from '../../platform/settings/settings.ts'
import { serveSettings } from '../../serve/config.ts'
import { devSettings } from '../config.ts'
import { readProjectFile, withRows, writeProjectFile } from './documents.ts'

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
const ofDevelopment = entriesOf({ development: devSettings })
const others = all.filter((entry) => !isUsual(entry))

const file = 'docs/settings.md'

export function settingsDocument(): string {
  const tables = {
    '## One server': all.filter(isUsual),
    '## Parts apart': others.filter((entry) => !isRare(entry)),
    '## Rarely changed': others.filter(isRare),
    '## Development': ofDevelopment,
  }
  const head = 'Setting | Part | Default | Allowed | Meaning'
  return Object.entries(tables).reduce(
    (document, [section, entries]) => withRows(document, head, entries.map(row), section),
    readProjectFile(file),
  )
}

/** The names of all settings of all parts, for platform/settings/known-names.json. */
export function knownNames(): string {
  const names = [...new Set([...all, ...ofDevelopment].map(({ name }) => name))].sort()
  return `${JSON.stringify(names, null, 2)}\n`
}

if (import.meta.main) {
  writeProjectFile(file, settingsDocument())
  writeProjectFile('platform/settings/known-names.json', knownNames())
}
