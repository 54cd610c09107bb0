/**
 * Makes every secret of an installation, a file for each part, for its owner only: `npm run secrets -- [folder]`. Files that
 * are there are never written over, since what is in them signs and encrypts what the database holds.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeyring } from '../core/keys/keyring.ts'
import { createAccess } from '../core/rpc/access.ts'
import { parseSecretKeys } from '../core/secrets.ts'
import { operatorScopes } from '../core/workspaces/operator-scopes.ts'

const folder = process.argv[2] ?? 'secrets'
const random = (bytes: number) => randomBytes(bytes).toString('base64url')

const secretKeys = `k1:${random(32)}`
const { issue } = createAccess(createKeyring(parseSecretKeys(secretKeys)), Date.now)
const mongodbPassword = random(24)
const mongodbHosts = 'mongodb-1,mongodb-2,mongodb-3'

const operatorToken = await issue({ subject: 'operator', scopes: [...operatorScopes] })
const files: Record<string, Record<string, string>> = {
  'core.env': { SECRET_KEYS: secretKeys, WORKSPACE_SESSION_SECRET: random(32) },
  'gateway.env': { CORE_TOKEN: await issue({ subject: 'gateway', scopes: ['visitors:act'] }) },
  'delivery.env': { DELIVERY_TOKEN: await issue({ subject: 'delivery', scopes: ['deliveries:work'] }) },
  // For the administration command, and for curl: the token stays out of the list of processes and the shell's history.
  'operator.env': { SERVICE_TOKEN: operatorToken },
  // The rest of compose.yaml: its database, and the core's way there.
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
  console.error(`${folder} has secrets already, and they stay as they are`)
  process.exit(1)
}
console.log(`The secrets are in ${folder}, for you alone.`)
