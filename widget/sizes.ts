import { brotliCompressSync } from 'node:zlib'
import { widgetLanguages, widgetLocales } from '../contract/widget-locales.ts'
import { type BuiltFile, buildWidget } from './build.ts'

const kib = 1024

interface MeasuredSize {
  name: string
  /** Sum of the sizes of the files as a browser downloads them, in bytes. */
  bytes: number
  /** Maximum allowed value of `bytes`. */
  limit: number
}

/**
 * Measures the sizes that docs/widget.md limits. Each size is the sum of the minified and compressed
 * files that a browser downloads for one purpose, including static imports. A chunk that is
 * imported on demand is measured separately, without the files that the page has already loaded.
 * Before a visitor opens the chat, the page downloads only `widget.js` and the configuration.
 *
 * @param bytesOf size of a file as it is downloaded; by default its size with Brotli
 */
export function measureSizes(
  files: readonly BuiltFile[],
  bytesOf = ({ content }: BuiltFile) => brotliCompressSync(content).length,
): MeasuredSize[] {
  const sizeOf = (first: string) => {
    const needed = withImports(files, first)
    return files.filter(({ name }) => needed.has(name)).reduce((sum, file) => sum + bytesOf(file), 0)
  }
  const loader = sizeOf('widget.js')
  const later = (part: string) =>
    sizeOf(files.find(({ name }) => name.startsWith('widget/v1/') && name.endsWith(`/${part}.js`))!.name)
  const longestLocale = Math.max(...widgetLocales.slice(1).map(later))
  return [
    { name: 'loader, widget.js', bytes: loader, limit: 3 * kib },
    { name: 'everything before the first open', bytes: loader + configurationBytes(), limit: 4.5 * kib },
    { name: 'chat', bytes: later('chat'), limit: 40 * kib },
    { name: 'largest language besides English', bytes: longestLocale, limit: 2.5 * kib },
    { name: "cards of agents' requests", bytes: later('requests'), limit: 4.5 * kib },
    { name: 'forms, consent and rating', bytes: later('forms'), limit: 7 * kib },
    { name: 'headless client', bytes: sizeOf('client.js'), limit: 20 * kib },
  ]
}

/** Returns the names of a file and of all files that it imports statically. */
function withImports(files: readonly BuiltFile[], first: string): Set<string> {
  const byName = new Map(files.map((file) => [file.name, file]))
  const needed = new Set<string>()
  const visit = (name: string) => {
    const file = byName.get(name)
    if (!file || needed.has(name)) return
    needed.add(name)
    for (const [, path] of file.content.toString().matchAll(/(?:from|import)\s*["']([^"']+)["']/g))
      visit(new URL(path!, `file:///${name}`).pathname.slice(1))
  }
  visit(first)
  return needed
}

/** Returns the size of the longest possible configuration, with 600 bytes for headers. */
function configurationBytes(): number {
  const answer = {
    contract: 'service.widget.public-api',
    locale: { default: 'en', supported: widgetLanguages },
    appearance: { title: 'x'.repeat(80), greeting: 'x'.repeat(500), accentColor: '#1f5f4f', position: 'right' },
    capabilities: { identity: true, typing: true, pageContext: true, navigation: true, screenshots: true },
  }
  return JSON.stringify(answer).length + 600
}

/** Formats the sizes as a text table. */
function sizeTable(sizes: readonly MeasuredSize[]): string {
  const inKib = (bytes: number) => `${(bytes / kib).toFixed(1).padStart(5)} KiB`
  return sizes.map(({ name, bytes, limit }) => `${name.padEnd(36)}${inKib(bytes)}  of ${inKib(limit)}`).join('\n')
}

if (import.meta.main) {
  const sizes = measureSizes(await buildWidget())
  console.log(sizeTable(sizes))
  if (sizes.some(({ bytes, limit }) => bytes > limit)) process.exitCode = 1
}
