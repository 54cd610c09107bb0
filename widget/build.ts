import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InlineConfig } from 'vite'
import { compressFiles, isStale, removeOld } from '../browser/build-files.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

/**
 * Folder of the built files. Servers deliver `widget.js`, `widget.json` and the folder `widget/` from
 * this folder. Their URL paths are their paths in this folder. `index.js`, `client.js` and `chunks/`
 * belong to the npm package.
 */
export const widgetDist = join(folder, 'dist')

/** Files of released versions by hash. Builds add them to `widget/v1/`, because pages pin them. */
export const releasedWidgets = join(folder, 'released')

/** Content of `widget.json`. The loader's URL contains its hash, so pages can pin it. */
export interface PinnedLoader {
  /** URL path of the loader: `/widget/v1/<hash>/widget.js`. */
  path: string
  /** Value of the attribute `integrity` of the script element. */
  integrity: string
}

/** Returns the value of an attribute `integrity`. */
export const integrityOf = (content: string | Buffer) =>
  `sha256-${createHash('sha256').update(content).digest('base64')}`

export interface BuiltFile {
  /** Path of the file, relative to `dist`. */
  name: string
  content: Buffer
}

/**
 * Builds all files into `dist`. First builds complete files elsewhere, then moves them into `dist`,
 * `widget.js` last. So parallel builds and running servers never see an incomplete build.
 *
 * @param keepOldMs how long files of earlier builds are kept for pages that are still open, in
 * milliseconds
 */
export async function buildWidget(keepOldMs = 24 * 60 * 60_000): Promise<BuiltFile[]> {
  // Imported here and not at the top, because callers with an up-to-date build need no build tools.
  const [{ build }, { chatBuild, loaderBuild, packageBuild, partBuild, parts }] = await Promise.all([
    import('vite'),
    import('./vite.config.ts'),
  ])
  await mkdir(widgetDist, { recursive: true })
  const outDir = await mkdtemp(join(widgetDist, '.build-'))
  const versions = join(outDir, 'widget/v1')
  const version = join(versions, 'new')
  const into = (config: InlineConfig, folder: string) =>
    build({ ...config, build: { ...config.build, outDir: folder } })
  try {
    const names = Object.keys(parts)
    const integrity = async (name: string) => integrityOf(await readFile(join(version, `${name}.js`)))
    await Promise.all([into(packageBuild, outDir), ...names.map((name) => into(partBuild(name), version))])
    const hashes = await Promise.all(names.map(async (name) => [name, await integrity(name)] as const))
    await into(chatBuild(Object.fromEntries(hashes)), version)
    await into(loaderBuild('./chat.js', await integrity('chat')), version)
    const hash = await hashOf(version)
    await rename(version, join(versions, hash))
    const loader = await readFile(join(versions, hash, 'widget.js'), 'utf8')
    await writeFile(join(outDir, 'widget.js'), loader.replace('./chat.js', `./widget/v1/${hash}/chat.js`))
    const pinned: PinnedLoader = { path: `/widget/v1/${hash}/widget.js`, integrity: integrityOf(loader) }
    await writeFile(join(outDir, 'widget.json'), `${JSON.stringify(pinned)}\n`)
    await compressFiles([join(outDir, 'widget.js'), ...(await filesIn(versions)).map((name) => join(versions, name))])
    const built = await filesIn(outDir)
    const files = await Promise.all(built.map(async (name) => ({ name, content: await readFile(join(outDir, name)) })))
    for (const name of built.sort((a, b) => Number(a === 'widget.js') - Number(b === 'widget.js'))) {
      await mkdir(dirname(join(widgetDist, name)), { recursive: true })
      await rename(join(outDir, name), join(widgetDist, name))
    }
    const current = [...built, ...(await addReleased())]
    // Lists only `widget/`, because other files of `dist` may belong to a running build.
    const hashed = (await filesIn(join(widgetDist, 'widget'))).map((name) => join('widget', name))
    await removeOld(widgetDist, hashed, current, keepOldMs)
    return files
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}

/** Builds only if a source has changed. Returns the built files. */
export async function buildWidgetIfStale(): Promise<BuiltFile[]> {
  return (await isWidgetStale()) ? buildWidget() : []
}

/** A build writes `widget.js` last. */
export const isWidgetStale = () =>
  isStale(folder, 'dist/widget.js', ['src', '../browser'], ['vite.config.ts', 'build.ts'])

/** Returns a hash of all files of a folder. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for (const name of await filesIn(path)) hash.update(`${name}\0`).update(await readFile(join(path, name)))
  return hash.digest('hex').slice(0, 16)
}

/** Adds the files of released versions. Returns their names. */
async function addReleased(): Promise<string[]> {
  const released = await filesIn(releasedWidgets).catch(() => [])
  const names = released.map((name) => join('widget/v1', name))
  const missing = names.filter((name) => !existsSync(join(widgetDist, `${name}.br`)))
  for (const name of missing) {
    await mkdir(dirname(join(widgetDist, name)), { recursive: true })
    await copyFile(join(releasedWidgets, name.slice('widget/v1/'.length)), join(widgetDist, name))
  }
  await compressFiles(missing.map((name) => join(widgetDist, name)))
  return names.flatMap((name) => [name, `${name}.br`, `${name}.gz`])
}

/** Returns the paths of all files below a folder. */
async function filesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length).replace(/^\//, ''))
    .sort()
}

if (import.meta.main) await buildWidget(process.argv.includes('--clean') ? 0 : undefined)
