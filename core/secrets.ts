import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CoreConfig } from './config.ts'
import { createKeyring, type SecretKey } from './keys/keyring.ts'
import { createAccess } from './rpc/access.ts'

/** The secrets of a data folder, made at its first use, for one machine. In production they come from settings. */
export interface DataFolderSecrets {
  /** As the setting SECRET_KEYS. */
  secretKeys: string
  /** HS256 key of workspace sessions, UTF-8 as written. */
  workspaceSessionSecret: string
  /** Service token of gateways that run beside the core. */
  gatewayToken: string
}

const secretsFile = 'secrets.json'

/** Reads the data folder's secrets, or makes them. Processes that start at once all get the same. */
export async function dataFolderSecrets(dataDir: string): Promise<DataFolderSecrets> {
  const path = join(dataDir, secretsFile)
  const found = await readJson(path)
  if (found) return found
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const secretKeys = `k1:${randomBytes(32).toString('base64url')}`
  const access = createAccess(createKeyring(parseSecretKeys(secretKeys)), Date.now)
  const fresh: DataFolderSecrets = {
    secretKeys,
    workspaceSessionSecret: randomBytes(32).toString('base64url'),
    gatewayToken: await access.issue({ subject: 'gateway', scopes: ['visitors:act'] }),
  }
  // Written whole under another name, then linked: whoever links first has made them.
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, JSON.stringify(fresh), { mode: 0o600, flag: 'wx' })
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  return (await readJson(path)) ?? fresh
}

async function readJson(path: string): Promise<DataFolderSecrets | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** The secret keys of the settings; outside production the data folder's, where there are none. Errors: as parseSecretKeys. */
export async function settingsSecretKeys({
  SECRET_KEYS,
  NODE_ENV,
  DATA_DIR,
}: Pick<CoreConfig, 'SECRET_KEYS' | 'NODE_ENV' | 'DATA_DIR'>): Promise<[SecretKey, ...SecretKey[]]> {
  if (SECRET_KEYS === '' && NODE_ENV === 'production') {
    throw new Error('SECRET_KEYS is missing: in production the secret keys come from the settings')
  }
  return parseSecretKeys(SECRET_KEYS || (await dataFolderSecrets(DATA_DIR)).secretKeys)
}

/** `k2:…,k1:…` as keys. Errors: names the key id that is too short, never the key. */
export function parseSecretKeys(text: string): [SecretKey, ...SecretKey[]] {
  const keys = text.split(',').map((entry) => {
    const [kid = '', encoded = ''] = entry.split(':')
    const secret = new Uint8Array(Buffer.from(encoded, 'base64'))
    if (secret.length < 32) throw new Error(`SECRET_KEYS: the key ${JSON.stringify(kid)} has fewer than 32 bytes`)
    return { kid, secret }
  })
  const [first, ...rest] = keys
  if (!first) throw new Error('SECRET_KEYS is empty')
  return [first, ...rest]
}
