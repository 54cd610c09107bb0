import { createTlsFiles, type TlsFiles } from '../platform/tls/tls-files.ts'

/** TLS settings of a client of the cores: paths of PEM files, or empty. */
export interface CoreTlsSettings {
  CORE_CA: string
  CLIENT_CERT: string
  CLIENT_KEY: string
}

/** Loads the files. Returns undefined if no path is set. Throws if a file is invalid. */
export function coreTlsFiles({
  CORE_CA: ca,
  CLIENT_CERT: cert,
  CLIENT_KEY: key,
}: CoreTlsSettings): TlsFiles | undefined {
  if (!ca && !cert && !key) return undefined
  return createTlsFiles({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) })
}
