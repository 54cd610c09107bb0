import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Returns true if `target` is missing or not newer than `files` and what the folders have, except for tests. */
export async function isStale(root: string, target: string, folders: string[], files: string[]) {
  const found = await Promise.all(folders.map((folder) => readdir(join(root, folder), { recursive: true })))
  const sources = found.flatMap((names, index) => names.map((name) => join(folders[index]!, name)))
  const watched = [...sources.filter((name) => !name.endsWith('.test.ts')), ...files]
  const changed = await Promise.all(watched.map((name) => modifiedAt(join(root, name))))
  return (await modifiedAt(join(root, target))) <= Math.max(...changed)
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

/** Compressors for built files, one for each content encoding, with the highest quality. */
const encodings = {
  br: (content: Buffer) =>
    promisify(brotliCompress)(content, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      },
    }),
  gz: (content: Buffer) => promisify(gzip)(content, { level: constants.Z_BEST_COMPRESSION }),
}

/** Writes `<path>.br` and `<path>.gz` beside each file. */
export async function compressFiles(paths: readonly string[]) {
  await Promise.all(
    paths.map(async (path) => {
      const content = await readFile(path)
      for (const [extension, compress] of Object.entries(encodings))
        await writeFile(`${path}.${extension}`, await compress(content))
    }),
  )
}
