import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SettingError } from '../platform/settings/settings.ts'

const othersBits = 0o077
const ownFolders = /^(mongodb$|nudges$|engine)/

/**
 * Creates a data folder. Takes the access of other users from an existing one: from the folder, its files and the
 * engine's folders. Does not change other folders, because `DATA_DIR` may name a folder that also has other content.
 * Errors: `SettingError`.
 */
export function makePrivate(dataDir: string) {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new SettingError(
      `DATA_DIR: the folder ${dataDir} cannot be created (${(error as NodeJS.ErrnoException).code})`,
    )
  }
  const home = realpathSync(dataDir)
  restrict(home)
  restrictEntries(home, (name) => ownFolders.test(name))
}

/** Leaves out symbolic links, whose modes mean nothing, and folders that are not the service's own. */
function restrictEntries(folder: string, isOwn: (name: string) => boolean) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isSymbolicLink() || (entry.isDirectory() && !isOwn(entry.name))) continue
    restrict(path)
    if (entry.isDirectory()) restrictEntries(path, () => true)
  }
}

function restrict(path: string) {
  try {
    const { mode } = lstatSync(path)
    if ((mode & othersBits) !== 0) chmodSync(path, mode & 0o700)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A running engine removes files at any time.
    if (code === 'ENOENT') return
    throw new SettingError(
      `Other users can access ${path}, and its mode cannot be changed (${code}): let this user own it`,
    )
  }
}

/** Replaces a file of a data folder at once. Only its owner can read it. */
export async function writePrivately(path: string, content: string) {
  const draft = `${path}.${randomBytes(4).toString('hex')}`
  await writeFile(draft, content, { mode: 0o600 })
  await rename(draft, path).catch(async ({ code }: NodeJS.ErrnoException) => {
    await rm(draft)
    throw new SettingError(`${path} in DATA_DIR cannot be replaced (${code}): remove it, then start again`)
  })
}
