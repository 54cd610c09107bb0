import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

/** Paths of PEM files. */
export interface TlsPaths {
  /** Authorities that the other side's certificate may be of. */
  ca?: string
  /** The own certificate, with those between it and its authority. */
  cert?: string
  key?: string
}

export type TlsMaterial = { [K in keyof TlsPaths]: Buffer }

export interface TlsFiles {
  /**
   * What the files hold, looked at once a second at most. The very same object while nothing changed, and while what changed
   * does not fit together: a certificate is often there before its key.
   */
  current(): TlsMaterial
}

/** How long nobody looks whether a file has changed, in milliseconds. */
const freshMs = 1000

/** Certificates that are renewed while the process runs. Errors: throws where the files cannot be used at the start. */
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
  let lookedAt = monotonic()

  function look() {
    lookedAt = monotonic()
    const found = stamp()
    if (found === seen) return
    material = read()
    seen = found
  }

  return {
    current() {
      if (monotonic() - lookedAt >= freshMs) {
        try {
          look()
        } catch {
          // A file is away or does not fit the others yet: what is there still counts, and is looked at again.
        }
      }
      return material
    },
  }
}
