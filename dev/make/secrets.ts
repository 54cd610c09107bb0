/**
 * `npm run make -- secrets [folder]`: creates the secrets of a deployment, one private file per process. Never
 * overwrites files, because their keys protect stored data. `--renew-tokens` replaces only the service tokens.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createKeyring, parseSecretKeys } from '../../core/keys/keyring.ts'
import { createAccess } from '../../core/workspaces/access.ts'
import { operatorScopes } from '../../core/workspaces/workspace-sessions.ts'
import { SettingError } from '../../platform/settings/settings.ts'
import { runCommand } from '../../platform/settings/start-faults.ts'

type Files = Record<string, Record<string, string>>

const random = (bytes: number) => randomBytes(bytes).toString('base64url')
/** Lifetime of the tokens of gateways and workers. An alert warns two weeks before its end. */
const partTokenSeconds = 365 * 86_400
/** Lifetime of the operator's token. `core/token.ts` creates another one. */
const operatorTokenSeconds = 90 * 86_400
const mongodbHosts = 'mongodb-1,mongodb-2,mongodb-3'

/** Returns a new key with an id of its own, such as `k20260131-9f3a:…`. */
const newSecretKey = () =>
  `k${new Date().toISOString().slice(0, 10).replaceAll('-', '')}-${randomBytes(2).toString('hex')}:${random(32)}`

async function tokenFiles(secretKeys: string) {
  const { issue } = createAccess(createKeyring(parseSecretKeys(secretKeys)), Date.now)
  const ofPart = (subject: string, scope: string) => issue({ subject, scopes: [scope], lifetime: partTokenSeconds })
  return {
    'gateway.env': { CORE_TOKEN: await ofPart('gateway', 'visitors:act') },
    'delivery.env': { DELIVERY_TOKEN: await ofPart('delivery', 'deliveries:work') },
    // The administration command and curl read the token here, so that no process list or shell history has it.
    'operator.env': {
      SERVICE_TOKEN: await issue({ subject: 'operator', scopes: [...operatorScopes], lifetime: operatorTokenSeconds }),
    },
  }
}

async function createAll(folder: string) {
  const secretKeys = newSecretKey()
  const mongodbPassword = random(24)
  const files: Files = {
    'core.env': { SECRET_KEYS: secretKeys, WORKSPACE_SESSION_SECRET: random(32) },
    ...(await tokenFiles(secretKeys)),
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
  try {
    for (const [name, text] of textsOf(files)) await writeFile(join(folder, name), text, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new Error(`${folder} already has secrets; they were not changed`)
  }
  console.log(`Secrets written to ${folder}, readable by you only.`)
}

/** Replaces the tokens in the files. Keeps their other lines. */
async function renewTokens(folder: string) {
  const core = await readFile(join(folder, 'core.env'), 'utf8').catch(() => '')
  const secretKeys = /^SECRET_KEYS=(.+)$/m.exec(core)?.[1]
  if (secretKeys === undefined) throw new Error(`${folder}/core.env has no SECRET_KEYS, which sign the tokens`)
  for (const [name, text] of textsOf(await tokenFiles(secretKeys))) {
    const path = join(folder, name)
    const before = await readFile(path, 'utf8').catch(() => '')
    const [setting = ''] = text.split(/[= ]/, 1)
    const others = before.split('\n').filter((line) => line !== '' && !line.startsWith(setting))
    await writeFile(`${path}.new`, others.map((line) => `${line}\n`).join('') + text, { mode: 0o600 })
    await rename(`${path}.new`, path)
  }
  console.log(`New tokens written to ${folder}. Restart gateways, delivery workers and what else uses them.`)
}

function textsOf(files: Files): [name: string, text: string][] {
  const texts = Object.entries(files).map(([name, values]): [string, string] => [
    name,
    Object.entries(values)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  ])
  return [...texts, ['operator.curl', `header = "Authorization: Bearer ${files['operator.env']?.SERVICE_TOKEN}"\n`]]
}

await runCommand('secrets', async () => {
  const { values, positionals } = parseArgs({
    options: { 'renew-tokens': { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  const [folder = 'secrets', ...rest] = positionals
  if (rest.length > 0) throw new SettingError('name one folder at most')
  await (values['renew-tokens'] ? renewTokens(folder) : createAll(folder))
})
