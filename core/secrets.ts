import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CoreConfig } from './config.ts'
import { createKeyring, type SecretKey } from './keys/keyring.ts'
import { createAccess } from './rpc/access.ts'

/**
 * Secrets of a data folder, generated at its first use, for one machine. In production they come
 * from settings.
 */
export interface DataFolderSecrets {
  /** In the format of the setting SECRET_KEYS. */
  secretKeys: string
  /** HS256 key of workspace sessions, UTF-8 as written. */
  workspaceSessionSecret: string
  /** Service token of gateways on the same machine. */
  gatewayToken: string
}

const secretsFile = 'secrets.json'

/**
 * Reads or generates the secrets of the data folder. Processes that start at once get the same
 * secrets.
 */
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
  // Written to a draft file, then linked: the first link wins.
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

/**
 * The secret keys of the settings, or outside production those of the data folder. Errors: those of
 * parseSecretKeys.
 */
export async function settingsSecretKeys({
  SECRET_KEYS,
  NODE_ENV,
  DATA_DIR,
}: Pick<CoreConfig, 'SECRET_KEYS' | 'NODE_ENV' | 'DATA_DIR'>): Promise<[SecretKey, ...SecretKey[]]> {
  if (SECRET_KEYS === '' && NODE_ENV === 'production') {
    throw new Error('SECRET_KEYS is missing: it is required in production')
  }
  return parseSecretKeys(SECRET_KEYS || (await dataFolderSecrets(DATA_DIR)).secretKeys)
}

/** Parses `k2:…,k1:…`. Errors: have the id of a key that is too short, never the key. */
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
