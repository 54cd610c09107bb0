import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { InlineConfig } from 'vite'

const folder = fileURLToPath(new URL('.', import.meta.url))

/**
 * Where the built files are. `widget.js` and the folder `widget/` beside it are what a server gives out at those very paths, the
 * folder's files for ever; `index.js`, `client.js` and `chunks/` are the package's.
 */
export const widgetDist = join(folder, 'dist')

export interface BuiltFile {
  /** Path below `dist`. */
  name: string
  content: Buffer
}

/**
 * Builds everything into `dist`. Files are moved there whole, and `widget.js` last, so that builds running at the same
 * time, or a server reading the old ones, never meet half a file or one that names another which is not there.
 *
 * @param keepOldMs how long files of earlier builds stay, for which pages already open may still ask
 */
export async function buildWidget(keepOldMs = 24 * 60 * 60_000): Promise<BuiltFile[]> {
  // Imported here, so that a current build does not load the tools.
  const [{ build }, { chatBuild, loaderBuild, packageBuild }] = await Promise.all([
    import('vite'),
    import('./vite.config.ts'),
  ])
  await mkdir(widgetDist, { recursive: true })
  const outDir = await mkdtemp(join(widgetDist, '.build-'))
  const into = (config: InlineConfig) => build({ ...config, build: { ...config.build, outDir } })
  try {
    await Promise.all([into(packageBuild), into(chatBuild)])
    const chat = (await readdir(join(outDir, 'widget'))).find((name) => name.startsWith('chat-'))
    await into(loaderBuild(`./widget/${chat}`))
    const names = await filesIn(outDir)
    const files = await Promise.all(names.map(async (name) => ({ name, content: await readFile(join(outDir, name)) })))
    for (const name of names.sort((a, b) => Number(a === 'widget.js') - Number(b === 'widget.js'))) {
      await mkdir(dirname(join(widgetDist, name)), { recursive: true })
      await rename(join(outDir, name), join(widgetDist, name))
    }
    await dropOld(names, keepOldMs)
    return files
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}

/** Builds if a source has changed. Returns the built files. */
export async function buildWidgetIfStale(): Promise<BuiltFile[]> {
  return (await isWidgetStale()) ? buildWidget() : []
}

/** Whether `widget.js`, the last file of a build, is missing or older than a source. */
export async function isWidgetStale(): Promise<boolean> {
  const sources = (await filesIn(join(folder, 'src'))).filter((name) => !name.endsWith('.test.ts'))
  const changed = await Promise.all(
    [...sources.map((name) => join('src', name)), 'vite.config.ts', 'build.ts'].map((name) =>
      modifiedAt(join(folder, name)),
    ),
  )
  return (await modifiedAt(join(widgetDist, 'widget.js'))) <= Math.max(...changed)
}

async function dropOld(current: string[], keepOldMs: number) {
  const kept = new Set(current)
  // Only this folder: the rest of `dist` may hold unfinished files of another build.
  const hashed = (await filesIn(join(widgetDist, 'widget'))).map((name) => join('widget', name))
  for (const name of hashed.filter((each) => !kept.has(each))) {
    const path = join(widgetDist, name)
    if ((await modifiedAt(path)) < Date.now() - keepOldMs) await rm(path, { force: true })
  }
}

/** Paths of the files below a folder. */
async function filesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length).replace(/^\//, ''))
    .sort()
}

async function modifiedAt(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )
}

if (import.meta.main) await buildWidget(process.argv.includes('--clean') ? 0 : undefined)
