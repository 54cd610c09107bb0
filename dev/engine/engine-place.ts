import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Why there is no engine. `held`: another engine uses the folder, but does not respond at its socket. `glibc`: the
 * C library is too old, and a newer one could not be fetched. `missing`: the package is not installed, or has no
 * build for this platform. `failed`: the engine exited at its start, or rejected the folder.
 */
export type EngineFailure = 'held' | 'glibc' | 'missing' | 'failed'

export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly reason: EngineFailure

  constructor(reason: EngineFailure, message: string, options?: ErrorOptions) {
    super(`${message} Set MONGODB_URI to use a MongoDB server instead.`, options)
    this.reason = reason
  }
}

/** Maximum length of a socket path in bytes, below the limits of Linux (107) and macOS (103). */
const socketPathBytes = 100
/** The engine's package appends this path to its temp folder. */
const packageSocket = 'embedded-mongodb-XXXXXX/mongodb.sock'

export type EnginePlace = ReturnType<typeof enginePlace>

/**
 * Returns the paths of a data folder's engine. They are the same in every process of one user, even if processes
 * name the folder by different paths. Creates missing folders, which only their owner can use.
 */
export const enginePlace = (dataDir: string) => {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const home = realpathSync(dataDir)
  const besideData = join(home, 'engine')
  // The engine's package does not escape a `%` in the path of its socket.
  const fits = (path: string) => Buffer.byteLength(path) <= socketPathBytes && !path.includes('%')
  const socketPath = join(home, 'engine.sock')
  const scratchDir = fits(join(besideData, packageSocket)) ? besideData : temporaryPlace(home, fits)
  mkdirSync(scratchDir, { recursive: true, mode: 0o700 })
  const reached = fits(socketPath) ? socketPath : join(scratchDir, 'engine.sock')
  return {
    databaseDir: join(home, 'mongodb'),
    /** Symbolic link to the socket of the engine. It stays the same when the engine restarts. */
    socketPath: reached,
    /** Temp folder that only this engine uses. So the engine may delete all other files in it. */
    scratchDir,
    /** Address for the driver. Names no database, and requests journaled writes (`writeConcernFor`). */
    uri: `mongodb://${encodeURIComponent(reached)}/?directConnection=true&w=1&journal=true`,
  }
}

const temporaryPlace = (home: string, fits: (path: string) => boolean) => {
  const name = `service-${createHash('sha256').update(home).digest('hex').slice(0, 16)}`
  const roots = [tmpdir(), '/tmp'].map((root) => realpathSync(root))
  const root = roots.find((candidate) => fits(join(candidate, name, packageSocket)))
  if (root === undefined) throw new Error(`The paths of ${home} and of the temp folder are too long for a unix socket.`)
  const place = join(root, name)
  mkdirSync(place, { recursive: true, mode: 0o700 })
  const found = lstatSync(place)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0) {
    throw new Error(`${place} must be a folder of this user that no other user can access.`)
  }
  return place
}
