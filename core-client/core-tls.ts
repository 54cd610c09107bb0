import { createTlsFiles, type TlsFiles } from '../platform/tls/tls-files.ts'

/** The settings of whoever calls the cores: paths of PEM files, empty for none. */
export interface CoreTlsSettings {
  CORE_CA: string
  CLIENT_CERT: string
  CLIENT_KEY: string
}

/** What those files hold, undefined where none is named. Errors: throws where one cannot be used. */
export function coreTlsFiles({
  CORE_CA: ca,
  CLIENT_CERT: cert,
  CLIENT_KEY: key,
}: CoreTlsSettings): TlsFiles | undefined {
  if (!ca && !cert && !key) return undefined
  return createTlsFiles({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) })
}
