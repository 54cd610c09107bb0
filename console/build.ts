import { cp, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compressFiles, isStale, removeOld } from '../browser/build-files.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))

/** Folder of the built console: `index.html` and its assets. Asset names contain a content hash. */
export const consoleDist = join(folder, 'dist')

export interface BuiltFile {
  name: string
  bytes: number
  /** Size with Brotli, as browsers download the file. */
  brotliBytes: number
}

/** How long assets of earlier builds are kept, in milliseconds, for pages that are still open. */
const keepMs = 24 * 3_600_000

/**
 * Builds the console into `dist`. Copies the assets before the page that refers to them. Keeps
 * assets of earlier builds for a day, so that open pages can still load them.
 */
async function buildConsole(): Promise<BuiltFile[]> {
  // Imported here, so that callers with an up-to-date build do not load the build tools.
  const [{ build }, { default: viteConfig }] = await Promise.all([import('vite'), import('./vite.config.ts')])
  const outDir = await mkdtemp(join(folder, '.dist-'))
  try {
    await build({ ...viteConfig, build: { ...viteConfig.build, outDir, emptyOutDir: true } })
    const built = ['index.html', ...(await readdir(join(outDir, 'assets'))).sort().map((name) => join('assets', name))]
    await compressFiles(built.map((name) => join(outDir, name)))
    await cp(join(outDir, 'assets'), join(consoleDist, 'assets'), { recursive: true })
    await cp(outDir, consoleDist, { recursive: true })
    const kept = (await readdir(join(consoleDist, 'assets'))).map((name) => join('assets', name))
    await removeOld(consoleDist, kept, built, keepMs)
    return await Promise.all(
      built.map(async (name) => {
        const { size: bytes } = await stat(join(outDir, name))
        return { name, bytes, brotliBytes: (await stat(join(outDir, `${name}.br`))).size }
      }),
    )
  } finally {
    await rm(outDir, { recursive: true, force: true })
  }
}

/** Builds only if a source has changed. Returns the built files, or none if nothing was built. */
export async function buildConsoleIfStale(): Promise<BuiltFile[]> {
  return (await isConsoleStale()) ? buildConsole() : []
}

/** Returns true if the built page is missing or older than a source. */
export const isConsoleStale = () =>
  isStale(
    folder,
    'dist/index.html',
    ['src', '../proto/gen/service', '../browser', 'public'],
    ['index.html', 'vite.config.ts', 'build.ts', 'translation.ts'],
  )

if (import.meta.main) {
  for (const { name, bytes, brotliBytes } of await buildConsole()) {
    console.log(`${name}: ${(bytes / 1024).toFixed(1)} KiB, ${(brotliBytes / 1024).toFixed(1)} KiB with Brotli`)
  }
}
