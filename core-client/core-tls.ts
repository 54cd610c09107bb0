import type { LineLogger } from '../platform/observability/logger.ts'
import { SettingError } from '../platform/settings/start-faults.ts'
import { createTlsFiles, type WatchedTlsFiles } from '../platform/tls/tls-files.ts'
import type { coreTlsSettings } from './core-settings.ts'

/**
 * Loads the PEM files for calls to the cores, if any are set. Throws `SettingError` for an invalid file.
 */
export function coreTlsFiles(
  settings: Record<keyof typeof coreTlsSettings, string>,
  logger?: LineLogger,
): WatchedTlsFiles | undefined {
  const { CORE_CA: ca, CLIENT_CERT: cert, CLIENT_KEY: key } = settings
  if ((cert === '') !== (key === '')) throw new SettingError('CLIENT_CERT and CLIENT_KEY are needed together')
  const given = Object.entries({ ca, cert, key }).filter(([, path]) => path !== '')
  if (given.length === 0) return undefined
  const names = { ca: 'CORE_CA', cert: 'CLIENT_CERT', key: 'CLIENT_KEY' }
  return createTlsFiles(Object.fromEntries(given), { names, logger })
}
