import { randomBytes } from 'node:crypto'
import { link, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CoreConfig } from '../core/config.ts'
import { createKeyring, parseSecretKeys } from '../core/keys/keyring.ts'
import { createAccess } from '../core/workspaces/access.ts'
import { readJsonFile, secretsRemedy } from '../platform/settings/data-file.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { makePrivate } from './private-folder.ts'

export interface DataFolderSecrets {
  /** Keys that seal secrets in the database, in the format of SECRET_KEYS. */
  secretKeys: string
  /** Signs workspace sessions. The UTF-8 bytes of the text are the HS256 key. */
  workspaceSessionSecret: string
  gatewayToken: string
}

export const secretsFile = 'secrets.json'

export async function withDataFolderSecrets(config: CoreConfig, dataDir: string): Promise<CoreConfig> {
  const { SECRET_KEYS, WORKSPACE_SESSION_SECRET, WORKSPACE_SESSION_JWKS_URL } = config
  if (SECRET_KEYS && (WORKSPACE_SESSION_SECRET || WORKSPACE_SESSION_JWKS_URL)) return config
  const { secretKeys, workspaceSessionSecret } = await dataFolderSecrets(dataDir)
  return {
    ...config,
    SECRET_KEYS: SECRET_KEYS || secretKeys,
    WORKSPACE_SESSION_SECRET: WORKSPACE_SESSION_SECRET || workspaceSessionSecret,
  }
}

/** Reads or generates the secrets. Processes that start at once get the same ones. */
export async function dataFolderSecrets(dataDir: string): Promise<DataFolderSecrets> {
  makePrivate(dataDir)
  const path = join(dataDir, secretsFile)
  const found = readSecrets(path)
  if (found) return found
  const secretKeys = `k${randomBytes(3).toString('hex')}:${randomBytes(32).toString('base64url')}`
  const access = createAccess(createKeyring(parseSecretKeys(secretKeys)), Date.now)
  const fresh: DataFolderSecrets = {
    secretKeys,
    workspaceSessionSecret: randomBytes(32).toString('base64url'),
    gatewayToken: await access.issue({ subject: 'gateway', scopes: ['visitors:act'] }),
  }
  // Writes a draft, then links it. Only the first process can create the link, so all processes use its secrets.
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, JSON.stringify(fresh), { mode: 0o600, flag: 'wx' })
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  return readSecrets(path) ?? fresh
}

/** Returns undefined if there is no file. Errors: `SettingError` if the file cannot be used. */
export function readSecrets(path: string): DataFolderSecrets | undefined {
  const found = readJsonFile<DataFolderSecrets>(path, secretsRemedy)
  if (!found) return undefined
  const { secretKeys = '', workspaceSessionSecret = '', gatewayToken } = found
  try {
    parseSecretKeys(secretKeys)
    if (workspaceSessionSecret.length >= 32 && gatewayToken) return { secretKeys, workspaceSessionSecret, gatewayToken }
  } catch {}
  throw new SettingError(`${path} in DATA_DIR lacks a valid secret: ${secretsRemedy}`)
}
