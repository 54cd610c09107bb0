import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { packageBuild, scriptTagBuild } from './vite.config.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

/** Where the built files are: `service-widget.js`, the package, and `widget.js`, the script tag's build. */
export const widgetDist = join(folder, 'dist')

export interface BuiltFile {
  name: string
  bytes: number
  gzipBytes: number
}

/**
 * Builds both files into `dist`. They are moved there whole, so that builds running at the same time, or a server reading
 * the old ones, never meet half a file.
 */
export async function buildWidget(): Promise<BuiltFile[]> {
  await mkdir(widgetDist, { recursive: true })
  const outDir = await mkdtemp(join(widgetDist, '.build-'))
  try {
    await Promise.all(
      [packageBuild, scriptTagBuild].map((config) => build({ ...config, build: { ...config.build, outDir } })),
    )
    const names = await readdir(outDir)
    return await Promise.all(
      names.sort().map(async (name) => {
        const content = await readFile(join(outDir, name))
        await rename(join(outDir, name), join(widgetDist, name))
        return { name, bytes: content.length, gzipBytes: gzipSync(content, { level: 9 }).length }
      }),
    )
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}

/** Builds only where a built file is missing or older than a source. Answers what was built. */
export async function buildWidgetIfStale(): Promise<BuiltFile[]> {
  const built = await Promise.all(['service-widget.js', 'widget.js'].map((name) => modifiedAt(join(widgetDist, name))))
  const sources = (await readdir(join(folder, 'src'), { recursive: true })).filter((name) => !name.endsWith('.test.ts'))
  const changed = await Promise.all(
    [...sources.map((name) => join('src', name)), 'vite.config.ts', 'build.ts'].map((name) =>
      modifiedAt(join(folder, name)),
    ),
  )
  return Math.min(...built) > Math.max(...changed) ? [] : buildWidget()
}

async function modifiedAt(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )
}

if (import.meta.main) {
  for (const { name, bytes, gzipBytes } of await buildWidget()) {
    console.log(`${name}: ${(bytes / 1024).toFixed(1)} KiB, ${(gzipBytes / 1024).toFixed(1)} KiB gzip`)
  }
}
