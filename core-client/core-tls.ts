import type { LineLogger } from '../platform/observability/line-logger.ts'
import { SettingError } from '../platform/settings/setting-error.ts'
import { createTlsFiles, type TlsFiles, type TlsMaterial, type WatchedTlsFiles } from '../platform/tls/tls-files.ts'

/** Paths of the PEM files for calls to the cores. An empty path means that the file is not set. */
export interface CoreTlsSettings {
  CORE_CA: string
  CLIENT_CERT: string
  CLIENT_KEY: string
}

/**
 * Loads the PEM files. Returns undefined if no path is set. Throws `SettingError` if a file is
 * invalid.
 */
export function coreTlsFiles(settings: CoreTlsSettings, logger?: LineLogger): WatchedTlsFiles | undefined {
  const { CORE_CA: ca, CLIENT_CERT: cert, CLIENT_KEY: key } = settings
  if ((cert === '') !== (key === '')) throw new SettingError('CLIENT_CERT and CLIENT_KEY are needed together')
  const given = Object.entries({ ca, cert, key }).filter(([, path]) => path !== '')
  if (given.length === 0) return undefined
  const names = { ca: 'CORE_CA', cert: 'CLIENT_CERT', key: 'CLIENT_KEY' }
  return createTlsFiles(Object.fromEntries(given), { names, logger })
}

/**
 * Returns a function that returns the current client. If the certificate files have changed since
 * its last call, the function creates a new client. It then calls `release` with the old client.
 */
export function withCurrentTls<Client>(
  tls: TlsFiles | undefined,
  create: (material: TlsMaterial | undefined) => Client,
  release: (old: Client) => void = () => {},
): () => Client {
  let material = tls?.current()
  let client = create(material)
  return () => {
    const found = tls?.current()
    if (found !== material) {
      release(client)
      material = found
      client = create(material)
    }
    return client
  }
}
