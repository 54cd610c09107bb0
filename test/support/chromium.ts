import { createReadStream, createWriteStream, existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createBrotliDecompress } from 'node:zlib'
import { inflate } from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import { atFileEnd } from './clean-up.ts'

/**
 * Arguments of Chromium. The arguments that the npm package recommends are not used: they include
 * `--single-process` and `--disable-web-security`, which hides CORS and CSP errors. `--no-sandbox`
 * is needed in containers and for the root user.
 */
const launchArguments = [
  '--no-sandbox',
  '--disable-gpu',
  '--font-render-hinting=none',
  // Accepts the dialog for screen sharing automatically. The video stream is still real.
  '--use-fake-ui-for-media-stream',
]

const packageFolder = fileURLToPath(new URL('..', import.meta.resolve('@sparticuz/chromium')))

let shared: Browser | undefined

/**
 * Returns a headless Chromium that the test files of this process share. Its pages are closed at
 * the end of the test file. Playwright closes the browser when the process exits.
 */
export async function sharedChromium(): Promise<Browser> {
  if (!shared?.isConnected()) shared = await launchChromium()
  const browser = shared
  atFileEnd(() => Promise.all(browser.contexts().map((context) => context.close())))
  return browser
}

/**
 * Starts headless Chromium from the npm package, without a download. Unpacks the executable (200
 * MB) once per user and version into the temporary folder. The caller closes the browser.
 */
export async function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: await unpackedChromium(),
    args: launchArguments,
    headless: true,
    env: await environment(),
  })
}

async function unpackedChromium(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8')) as { version: string }
  const folder = join(tmpdir(), `service-chromium-${version}-${userInfo().uid}`)
  const executable = join(folder, 'chromium')
  if (existsSync(executable)) return executable
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Test files run in parallel. Each process unpacks to its own file and then renames it. The
  // rename is atomic, so no process starts an incomplete file.
  const unfinished = `${executable}.${process.pid}`
  try {
    const packed = createReadStream(join(packageFolder, 'bin', 'chromium.br'))
    await pipeline(packed, createBrotliDecompress(), createWriteStream(unfinished, { mode: 0o700 }))
    await rename(unfinished, executable)
  } finally {
    await rm(unfinished, { force: true })
  }
  return executable
}

/** Environment of Chromium. It uses the fonts of the npm package if the machine has no fonts. */
async function environment(): Promise<Record<string, string>> {
  const inherited = Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  )
  if (existsSync('/etc/fonts/fonts.conf')) return inherited
  return { ...inherited, FONTCONFIG_PATH: await inflate(join(packageFolder, 'bin', 'fonts.tar.br')) }
}
