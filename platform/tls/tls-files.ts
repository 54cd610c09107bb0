import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** Paths of PEM files. */
export interface TlsPaths {
  /** Authorities to verify the certificate of the peer with. */
  ca?: string
  /** The own certificate and its intermediate certificates. */
  cert?: string
  key?: string
}

export type TlsMaterial = { [K in keyof TlsPaths]: Buffer }

export interface TlsFiles {
  /**
   * Returns the content of the files, checked for changes at most once a second. Returns the same
   * object until the files change and fit together: a new certificate is often written before its
   * key.
   */
  current(): TlsMaterial
}

/** Least time between checks for changed files, in milliseconds. */
const freshMs = 1000

/** Reads PEM files and reloads them when they change. Throws if they are invalid at the start. */
export function createTlsFiles(paths: TlsPaths, monotonic = () => performance.now()): TlsFiles {
  const given = Object.entries(paths) as [keyof TlsPaths, string][]
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
          // A file is missing or does not fit the others yet. Keep the old content and check again.
        }
      }
      return material
    },
  }
}
