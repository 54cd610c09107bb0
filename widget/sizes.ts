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
 * The sizes that are promised, minified and gzipped, each file by itself. What a file imports counts with it; what is fetched
 * later, when something is first needed, is measured apart. The chat has everything in it that an open chat fetches. Before the first open there is the loader and the installation's
 * configuration, which is counted at its utmost length.
 */
export function measureSizes(files: readonly BuiltFile[]): MeasuredSize[] {
  const nameOf = (pattern: RegExp) => files.find(({ name }) => pattern.test(name))!.name
  const loader = sizeOf(files, ['widget.js'])
  const chat = nameOf(/^widget\/chat-/)
  const partOf = (part: string) => nameOf(new RegExp(`^widget/${part}-`))
  const there = withImports(files, chat)
  const later = (part: string) => sizeOf(files, [partOf(part)], there)
  const longestLocale = Math.max(...['de', 'es', 'fr', 'ar', 'ja'].map((language) => later(language)))
  return [
    { name: 'loader, widget.js', bytes: loader, limit: 3 * kib },
    { name: 'everything before the first open', bytes: loader + configurationBytes(), limit: 5 * kib },
    { name: 'headless client', bytes: sizeOf(files, ['client.js']), limit: 10 * kib },
    { name: 'user interface with client', bytes: sizeOf(files, [chat]), limit: 25 * kib },
    { name: 'largest language besides English', bytes: longestLocale, limit: 3 * kib },
    {
      name: 'typing, presence, forms: the rules',
      bytes: sizeOf(files, ['chunks/features.js'], withImports(files, 'client.js')),
      limit: 5 * kib,
    },
    { name: "agents' requests: the rules", bytes: later('agent-requests'), limit: 3 * kib },
    { name: 'identity', bytes: later('identity'), limit: 2 * kib },
    { name: 'a form', bytes: later('form-view'), limit: 3.5 * kib },
    { name: "an agent's request", bytes: later('request-card'), limit: 5.5 * kib },
  ]
}

/** Size of these files and their imports, without those that are already loaded. */
function sizeOf(files: readonly BuiltFile[], names: readonly string[], there = new Set<string>()): number {
  const needed = new Set(names.flatMap((name) => [...withImports(files, name)]))
  return files
    .filter(({ name }) => needed.has(name) && !there.has(name))
    .reduce((sum, { content }) => sum + gzipSync(content, { level: 9 }).length, 0)
}

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
  return sizes.map(({ name, bytes, limit }) => `${name.padEnd(36)}${inKib(bytes)}  of ${inKib(limit)}`).join('\n')
}

if (import.meta.main) {
  const sizes = measureSizes(await buildWidget())
  console.log(sizeTable(sizes))
  if (sizes.some(({ bytes, limit }) => bytes > limit)) process.exitCode = 1
}
