import { X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { LineLogger } from '../observability/logger.ts'
import { fileFault, SettingError } from '../settings/start-faults.ts'

interface TlsPaths {
  /** Path of the authorities that verify the certificate of the other side. */
  ca?: string
  /** Path of this process's certificate, followed by the intermediate certificates. */
  cert?: string
  key?: string
}

export type TlsMaterial = { [K in keyof TlsPaths]: Buffer }

export type WatchedTlsFiles = ReturnType<typeof createTlsFiles>
export type TlsFiles = Pick<WatchedTlsFiles, 'current'>

const freshMs = 1000
/** Invalid files are reported after this time, because certificate and key are not written at the same moment. */
const reportAfterMs = 10_000

interface TlsFilesOptions {
  /** Names of the settings that have the paths, for error messages. */
  names?: Partial<Record<keyof TlsPaths, string>>
  logger?: LineLogger
  monotonic?: () => number
}

/**
 * Reads PEM files and reloads them when they change. Throws a `SettingError` if they are invalid at this call. If
 * changed files are invalid, keeps the old content and logs a warning.
 */
export function createTlsFiles(paths: TlsPaths, options: TlsFilesOptions = {}) {
  const { names = {}, logger, monotonic = () => performance.now() } = options
  const given = Object.entries(paths).filter(([, path]) => path !== undefined) as [keyof TlsPaths, string][]
  const nameOf = (kind: keyof TlsPaths) => names[kind] ?? kind

  const stamp = () => given.map(([, path]) => `${statSync(path).ino} ${statSync(path).mtimeMs}`).join()

  function readOne([kind, path]: [keyof TlsPaths, string]): [keyof TlsPaths, Buffer] {
    let content: Buffer
    try {
      content = readFileSync(path)
    } catch (error) {
      throw new SettingError(fileFault(nameOf(kind), path, error as NodeJS.ErrnoException))
    }
    if (isPem(kind, content)) return [kind, content]
    throw new SettingError(
      `${nameOf(kind)}: the file ${path} has no valid ${kind === 'key' ? 'key' : 'certificate'} (PEM)`,
    )
  }

  function read() {
    const material: TlsMaterial = Object.fromEntries(given.map(readOne))
    try {
      createSecureContext(material)
    } catch {
      throw new SettingError(`${nameOf('key')}: the key does not belong to the certificate of ${nameOf('cert')}`)
    }
    return material
  }

  let material = read()
  let seen = stamp()
  let checkedAt = monotonic()
  let fault: { since: number; text: string; isReported: boolean } | undefined

  function reload() {
    checkedAt = monotonic()
    try {
      const found = stamp()
      if (found !== seen) {
        material = read()
        seen = found
        if (fault?.isReported) logger?.info({}, 'the changed TLS files are valid; using them')
      }
      fault = undefined
    } catch (error) {
      noteFault(error as Error)
    }
  }

  function noteFault({ message: text }: Error) {
    fault = { since: fault?.since ?? checkedAt, text, isReported: fault?.isReported ?? false }
    if (fault.isReported || checkedAt - fault.since < reportAfterMs) return
    fault.isReported = true
    logger?.warn({ reason: text }, 'the changed TLS files are invalid; still using the earlier ones')
  }

  function check() {
    if (monotonic() - checkedAt >= freshMs) reload()
  }

  return {
    /**
     * Returns the content. Looks for changes at most once a second. Returns the same object until the files have
     * changed and certificate and key match, because a new certificate is often written before its key.
     */
    current() {
      check()
      return material
    },
    /** Expiry of the certificate, or without one of the first authority, in milliseconds since 1970. */
    expiresAt() {
      check()
      return new X509Certificate((material.cert ?? material.ca)!).validToDate.getTime()
    },
    /** Whether the files on disk are invalid, so that earlier ones are in use. */
    isStale() {
      check()
      return fault !== undefined && checkedAt - fault.since >= reportAfterMs
    },
  }
}

function isPem(kind: keyof TlsPaths, content: Buffer) {
  try {
    createSecureContext({ [kind]: content })
    if (kind !== 'key') new X509Certificate(content)
    return true
  } catch {
    return false
  }
}
