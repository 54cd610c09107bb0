import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Returns true if `target` is missing or older than a source. Equal times count as older. */
export async function isOutdated(target: string, sources: readonly string[]): Promise<boolean> {
  const changed = await Promise.all(sources.map(modifiedAt))
  return (await modifiedAt(target)) <= Math.max(...changed)
}

/** Removes the files of `names` that are not in `current` and have not changed for `keepMs`. */
export async function removeOld(folder: string, names: readonly string[], current: readonly string[], keepMs: number) {
  const needed = new Set(current)
  for (const name of names.filter((each) => !needed.has(each))) {
    const path = join(folder, name)
    if ((await modifiedAt(path)) < Date.now() - keepMs) await rm(path, { force: true })
  }
}

/** Returns the time in milliseconds at which a file was changed, or 0 if the file does not exist. */
async function modifiedAt(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )
}
