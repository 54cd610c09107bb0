/**
 * Creates all secrets of a deployment, one file per process, readable by the owner only:
 * `npm run make -- secrets [folder]`. Never overwrites existing files, because their keys protect stored data.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeyring, parseSecretKeys } from '../core/keys/keyring.ts'
import { createAccess } from '../core/workspaces/access.ts'
import { operatorScopes } from '../core/workspaces/workspace-sessions.ts'

const folder = process.argv[2] ?? 'secrets'
const random = (bytes: number) => randomBytes(bytes).toString('base64url')

const secretKeys = `k1:${random(32)}`
const { issue } = createAccess(createKeyring(parseSecretKeys(secretKeys)), Date.now)
const mongodbPassword = random(24)
const mongodbHosts = 'mongodb-1,mongodb-2,mongodb-3'

/** Lifetime of the operator's token in seconds: 90 days. `core/token.ts` creates another one. */
const operatorTokenSeconds = 90 * 86_400
const operatorToken = await issue({
  subject: 'operator',
  scopes: [...operatorScopes],
  lifetime: operatorTokenSeconds,
})
const files: Record<string, Record<string, string>> = {
  'core.env': { SECRET_KEYS: secretKeys, WORKSPACE_SESSION_SECRET: random(32) },
  'gateway.env': { CORE_TOKEN: await issue({ subject: 'gateway', scopes: ['visitors:act'] }) },
  'delivery.env': { DELIVERY_TOKEN: await issue({ subject: 'delivery', scopes: ['deliveries:work'] }) },
  // Service token for the administration command and curl, valid for 90 days. The file keeps the token out of the
  // process list and shell history.
  'operator.env': { SERVICE_TOKEN: operatorToken },
  // Credentials of the database in compose.yaml, and the address with which the core connects.
  'mongodb.env': {
    MONGODB_KEYFILE: randomBytes(256).toString('base64'),
    MONGO_INITDB_ROOT_USERNAME: 'root',
    MONGO_INITDB_ROOT_PASSWORD: random(24),
    SERVICE_PASSWORD: mongodbPassword,
  },
  'compose-core.env': {
    MONGODB_URI: `mongodb://service:${mongodbPassword}@${mongodbHosts}/?replicaSet=service&authSource=service`,
  },
}

await mkdir(folder, { recursive: true, mode: 0o700 })
const texts = Object.entries(files).map(([name, values]): [string, string] => [
  name,
  Object.entries(values)
    .map(([key, value]) => `${key}=${value}\n`)
    .join(''),
])
texts.push(['operator.curl', `header = "Authorization: Bearer ${operatorToken}"\n`])
try {
  for (const [name, text] of texts) await writeFile(join(folder, name), text, { mode: 0o600, flag: 'wx' })
} catch (error) {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  console.error(`${folder} already has secrets; they were not changed`)
  process.exit(1)
}
console.log(`Secrets written to ${folder}, readable by you only.`)
