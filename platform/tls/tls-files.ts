import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** Paths of PEM files. */
interface TlsPaths {
  /** Path of the certificate authorities that verify the certificate of the other side. */
  ca?: string
  /** Path of this process's certificate, followed by the intermediate certificates. */
  cert?: string
  key?: string
}

export type TlsMaterial = { [K in keyof TlsPaths]: Buffer }

export interface TlsFiles {
  /**
   * Returns the content of the files. Checks the files for changes at most once a second. Returns
   * the same object until the files have changed and certificate and key match. A new certificate
   * is often written before its key.
   */
  current(): TlsMaterial
}

/** Minimum time between checks for changed files, in milliseconds. */
const freshMs = 1000

/**
 * Reads PEM files and reloads them when they change. Throws if the files are invalid at this call.
 */
export function createTlsFiles(paths: TlsPaths, monotonic = () => performance.now()): TlsFiles {
  const given = Object.entries(paths).filter(([, path]) => path !== undefined) as [keyof TlsPaths, string][]
  const stamp = () => given.map(([, path]) => `${statSync(path).ino} ${statSync(path).mtimeMs}`).join()

  function read(): TlsMaterial {
    const material: TlsMaterial = Object.fromEntries(given.map(([name, path]) => [name, readFileSync(path)]))
    createSecureContext(material)
    return material
  }

  let seen = stamp()
  let material = read()
  let checkedAt = monotonic()

  function reload() {
    checkedAt = monotonic()
    const found = stamp()
    if (found === seen) return
    material = read()
    seen = found
  }

  return {
    current() {
      if (monotonic() - checkedAt >= freshMs) {
        try {
          reload()
        } catch {
          // A file is missing, or certificate and key do not match yet. Keeps the old content; a
          // later call checks again.
        }
      }
      return material
    },
  }
}
