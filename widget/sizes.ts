import { gzipSync } from 'node:zlib'
import { type BuiltFile, buildWidget } from './build.ts'

const kib = 1024

export interface MeasuredSize {
  name: string
  /** Minified and gzipped, in bytes. */
  bytes: number
  limit: number
}

/**
 * The sizes that are promised, minified and gzipped. Before the first open there is the loader and the installation's
 * configuration, which is counted at its utmost length.
 */
export function measureSizes(files: readonly BuiltFile[]): MeasuredSize[] {
  const sizeOf = (pattern: RegExp) =>
    files
      .filter(({ name }) => pattern.test(name))
      .reduce((sum, { content }) => sum + gzipSync(content, { level: 9 }).length, 0)
  const loader = sizeOf(/^widget\.js$/)
  const longestLocale = Math.max(
    ...files.filter(({ name }) => /^widget\/(?!chat)/.test(name)).map(({ content }) => gzipSync(content).length),
  )
  return [
    { name: 'loader, widget.js', bytes: loader, limit: 3 * kib },
    { name: 'everything before the first open', bytes: loader + configurationBytes(), limit: 5 * kib },
    { name: 'headless client', bytes: headlessSize(files), limit: 10 * kib },
    { name: 'user interface with client', bytes: sizeOf(/^widget\/chat-/), limit: 25 * kib },
    { name: 'largest language besides English', bytes: longestLocale, limit: 3 * kib },
  ]
}

/** The client's entry with every file that it imports. */
function headlessSize(files: readonly BuiltFile[]): number {
  const byName = new Map(files.map((file) => [file.name, file]))
  const needed = new Set<string>()
  const visit = (name: string) => {
    const file = byName.get(name)
    if (!file || needed.has(name)) return
    needed.add(name)
    for (const [, path] of file.content.toString().matchAll(/from\s*["'`]([^"'`]+)["'`]/g))
      visit(new URL(path!, `file:///${name}`).pathname.slice(1))
  }
  visit('client.js')
  return gzipSync(Buffer.concat([...needed].map((name) => byName.get(name)!.content)), { level: 9 }).length
}

/** A configuration with everything that one may hold, and headers as the gateway sends them. */
function configurationBytes(): number {
  const answer = {
    contract: 'service.widget.public-api',
    locale: { default: 'en', supported: ['en', 'de', 'es', 'fr', 'ar', 'ja'] },
    appearance: { title: 'x'.repeat(80), greeting: 'x'.repeat(500), accentColor: '#1f5f4f', position: 'right' },
    capabilities: { identity: true, typing: true, pageContext: true, navigation: true, screenshots: true },
  }
  return JSON.stringify(answer).length + 600
}

/** The sizes as a table. */
export function sizeTable(sizes: readonly MeasuredSize[]): string {
  const inKib = (bytes: number) => `${(bytes / kib).toFixed(1).padStart(5)} KiB`
  return sizes.map(({ name, bytes, limit }) => `${name.padEnd(34)}${inKib(bytes)}  of ${inKib(limit)}`).join('\n')
}

if (import.meta.main) {
  const sizes = measureSizes(await buildWidget())
  console.log(sizeTable(sizes))
  if (sizes.some(({ bytes, limit }) => bytes > limit)) process.exitCode = 1
}
