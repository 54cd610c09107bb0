// Writes docs/settings.md from the schemas that check the settings: `npm run make -- settings`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adminSettings } from '../admin/config.ts'
import { coreSettings } from '../core/config.ts'
import { deliverySettings } from '../delivery/config.ts'
import { gatewaySettings } from '../gateway/config.ts'
import { devSettings } from './config.ts'

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
    maximum === undefined ? '' : `at most ${maximum}`,
  ].filter(Boolean)
  const allowed = anyOf ? anyOf.map((literal) => `\`${literal.const}\``).join(', ') : bounds.join(', ')
  const shown = fallback === undefined || fallback === '' ? '' : `\`${fallback}\``
  return `| \`${name}\` | ${shown} | ${allowed} | ${description ?? ''} |`
}

function table(properties: Record<string, unknown>): string {
  return [
    '| Setting | Default | Allowed | Meaning |',
    '|---|---|---|---|',
    ...Object.entries(properties).map(row),
  ].join('\n')
}

/** Returns the text of docs/settings.md, generated from the schemas. */
export function settingsDocument(): string {
  return `# Settings

Environment variables, read once when a process starts. An invalid value stops the start with an error that names the setting.
An empty value counts as unset. This page is generated from the schemas that validate them (\`npm run make -- settings\`).

## Core

${table(coreSettings.properties)}

## Gateway

${table(gatewaySettings.properties)}

## Delivery worker

${table(deliverySettings.properties)}

## Administration command

${table(adminSettings.properties)}

## One machine

\`npm start\`, \`npm run core\`, \`npm run migrate\` and \`npm run make -- token\` also have these.

${table(devSettings.properties)}

## Secrets

The first \`npm start\` or \`npm run core\` creates \`DATA_DIR/secrets.json\`, readable by its owner only. It has the secret keys, the
gateway's service token and the key of workspace sessions. The delivery worker needs only its token, in \`DATA_DIR/delivery.token\`.
With \`NODE_ENV=production\`, and by \`core/main.ts\`, nothing is created: set \`MONGODB_URI\`, \`SECRET_KEYS\`, the gateway's \`CORE_TOKEN\`, the worker's
\`DELIVERY_TOKEN\` and the signer of workspace sessions (\`WORKSPACE_SESSION_SECRET\` or \`WORKSPACE_SESSION_JWKS_URL\`).
A missing setting stops the start.

To rotate \`SECRET_KEYS\`, add a new key at the front. It signs from then on; the old key is accepted until you remove it.
\`WORKSPACE_SESSION_SECRET\` works the same way: each secret of the list is accepted.
`
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../docs/settings.md'), settingsDocument())
