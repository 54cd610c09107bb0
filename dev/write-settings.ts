// Writes docs/settings.md from the schemas that check the settings: `npm run docs:settings`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AdminSettings } from '../admin/config.ts'
import { coreSettings } from '../core/config.ts'
import { DeliverySettings } from '../delivery/config.ts'
import { SettingsSchema } from '../gateway/config.ts'

interface Setting {
  default?: unknown
  description?: string
  type?: string
  minimum?: number
  maximum?: number
  anyOf?: { const: string }[]
}

function row([name, schema]: [string, unknown]): string {
  const { default: fallback, description, minimum, maximum, anyOf } = schema as Setting
  const bounds = [
    minimum === undefined ? '' : `${minimum} or more`,
    maximum === undefined ? '' : `${maximum} at most`,
  ].filter(Boolean)
  const allowed = anyOf ? anyOf.map((literal) => `\`${literal.const}\``).join(', ') : bounds.join(', ')
  const shown = fallback === undefined || fallback === '' ? '' : `\`${fallback}\``
  return `| \`${name}\` | ${shown} | ${allowed} | ${description ?? ''} |`
}

function table(properties: Record<string, unknown>): string {
  return [
    '| Setting | Default | Allowed | What it does |',
    '|---|---|---|---|',
    ...Object.entries(properties).map(row),
  ].join('\n')
}

/** The document as the schemas have it. */
export function settingsDocument(): string {
  return `# Settings

Environment variables, read once at the start of a process. A wrong one stops the start with its name and what is allowed.
An empty one counts as left out. This page is written from the schemas that check them (\`npm run docs:settings\`).

## Core

${table(coreSettings.properties)}

## Gateway

${table(SettingsSchema.properties)}

## Delivery worker

${table(DeliverySettings.properties)}

## Administration command

${table(AdminSettings.properties)}

## Demo shop

| Setting | Default | Allowed | What it does |
|---|---|---|---|
| \`DEMO_PORT\` | \`8081\` | 0 or more, 65535 at most | Port of the demo shop. |

## Secrets

Outside production the first start makes \`DATA_DIR/secrets.json\` (for its owner only): the secret keys, the gateway's service
token and the key of workspace sessions. The delivery worker's token is in a file of its own, \`DATA_DIR/delivery.token\`: the worker
needs no other secret. With \`NODE_ENV=production\` nothing is made: \`SECRET_KEYS\`, the gateway's \`CORE_TOKEN\`, the worker's
\`DELIVERY_TOKEN\` and who signs workspace sessions (\`WORKSPACE_SESSION_SECRET\` or \`WORKSPACE_SESSION_JWKS_URL\`) come from settings,
and a missing one stops the start.

\`SECRET_KEYS\` is rotated by putting a new key in front: it signs from then on, and the old one is accepted until it is taken
out. \`WORKSPACE_SESSION_SECRET\` likewise: each secret of the list is accepted.
`
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../docs/settings.md'), settingsDocument())
