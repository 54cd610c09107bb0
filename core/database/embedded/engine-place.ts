import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The path of a unix socket has at most 107 bytes on Linux and 103 on macOS. */
const socketPathBytes = 100
/** The path that the engine's package appends to its temp folder. */
const packageSocket = 'embedded-mongodb-XXXXXX/mongodb.sock'

export type EnginePlace = {
  /** MongoDB's own files. */
  databaseDir: string
  /** A symbolic link to the present socket, the same for every process that uses the engine. */
  socketPath: string
  /** The engine's own temp folder, so that the holder of the engine may clear it. */
  scratchDir: string
  /**
   * The driver's address. It names no database and requests journaled writes, see
   * `durableWriteConcern`.
   */
  uri: string
}

/**
 * The paths of the engine of a data folder. They are the same in every process of one user on one
 * machine, by whatever path the folder is given. Creates missing folders, accessible to their owner
 * only.
 * @throws if a folder cannot be created, or a temp folder belongs to another user
 */
export const enginePlace = (dataDir: string): EnginePlace => {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const home = realpathSync(dataDir)
  const besideData = join(home, 'engine')
  const fits = (path: string) => Buffer.byteLength(path) <= socketPathBytes
  const socketPath = join(home, 'engine.sock')
  const scratchDir = fits(join(besideData, packageSocket)) ? besideData : temporaryPlace(home, fits)
  mkdirSync(scratchDir, { recursive: true, mode: 0o700 })
  const reached = fits(socketPath) ? socketPath : join(scratchDir, 'engine.sock')
  return {
    databaseDir: join(home, 'mongodb'),
    socketPath: reached,
    scratchDir,
    uri: `mongodb://${encodeURIComponent(reached)}/?directConnection=true&w=1&journal=true`,
  }
}

/** The address of a data folder's engine, running or not. */
export const engineUri = (dataDir: string): string => enginePlace(dataDir).uri

const temporaryPlace = (home: string, fits: (path: string) => boolean): string => {
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
