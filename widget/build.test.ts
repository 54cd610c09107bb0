import { readdir, readFile } from 'node:fs/promises'
import { basename, join, matchesGlob, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { widgetLocales } from '../contract/widget-locales.ts'
import { itLong } from '../test/support/is-long.ts'
import { until } from '../test/support/until.ts'
import { type BuiltFile, buildWidget, buildWidgetIfStale, integrityOf, type PinnedLoader, widgetDist } from './build.ts'
import { measureSizes } from './sizes.ts'

const source = fileURLToPath(new URL('src/', import.meta.url))

describe('the built widget', () => {
  let files: BuiltFile[]
  beforeAll(async () => {
    files = await buildWidget()
  })
  const code = (pattern: RegExp) => files.filter(({ name }) => pattern.test(name)).map(({ content }) => String(content))

  it('the built widget does not exceed any size limit', () => {
    const sizes = measureSizes(files)
    expect(sizes).toHaveLength(7)
    for (const { name, bytes, limit } of sizes) {
      expect(bytes, name).toBeGreaterThan(500)
      expect(bytes, name).toBeLessThanOrEqual(limit)
    }
  })

  it('the widget is complete, and is not rebuilt if no source has changed', async () => {
    expect(await buildWidgetIfStale()).toEqual([])
    for (const { name, content } of files) expect(await readFile(join(widgetDist, name))).toEqual(content)
  })

  itLong('the widget is complete if several processes build at once', async () => {
    const builds = await Promise.all([buildWidget(), buildWidget()])
    for (const built of builds) expect(built.map(({ name }) => name)).toEqual(files.map(({ name }) => name))
    for (const { name, content } of files) expect(await readFile(join(widgetDist, name))).toEqual(content)
    // Another test may build at this moment.
    await until('every build to remove its folder', async () =>
      (await readdir(widgetDist)).every((name) => !name.startsWith('.')),
    )
  })

  it('the built widget uses no API that a strict content security policy forbids, and no storage except session storage', () => {
    for (const text of code(/\.js$/)) {
      expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/)
      expect(text).not.toMatch(/localStorage|document\.cookie|indexedDB/)
    }
  })

  it('the moving loader and the pinned loader load the same chat and check its hash', async () => {
    const { path, integrity }: PinnedLoader = JSON.parse(code(/^widget\.json$/)[0]!)
    const pinned = files.find(({ name }) => `/${name}` === path)!
    const chat = files.find(({ name }) => name.endsWith('/chat.js'))!
    expect(integrity).toBe(integrityOf(pinned.content))
    expect(path).toMatch(/^\/widget\/v1\/[0-9a-f]{16}\/widget\.js$/)
    const [moving] = code(/^widget\.js$/)
    for (const loader of [moving!, String(pinned.content)]) expect(loader).toContain(integrityOf(chat.content))
    expect(moving).toContain(`./${chat.name}`)
    expect(moving!.replace(`./${chat.name}`, './chat.js')).toBe(String(pinned.content))
  })

  it('the chat contains the hash of each part, and no file imports another one unchecked', () => {
    const built = files.filter(({ name }) => /^widget\/v1\/.*\.js$/.test(name) && !/\/widget\.js$/.test(name))
    const parts = built.filter(({ name }) => !name.endsWith('/chat.js'))
    expect(parts.map(({ name }) => basename(name))).toEqual(
      [...widgetLocales.slice(1), 'forms', 'requests'].map((name) => `${name}.js`).sort(),
    )
    const chat = code(/\/chat\.js$/)[0]!
    for (const { content } of parts) expect(chat).toContain(integrityOf(content))
    for (const { content } of built) expect(String(content)).not.toMatch(/(?:from|import)\s*\(?["'`]/)
  })

  it('the files for browsers have a Brotli and a gzip file beside them', () => {
    const served = files.filter(({ name }) => /^widget(\.js|\/.+\.js)$/.test(name))
    expect(served).toHaveLength(5 + widgetLocales.length - 1)
    for (const { name, content } of served) {
      const compressed = (extension: string) => files.find((file) => file.name === `${name}.${extension}`)!.content
      expect(brotliDecompressSync(compressed('br'))).toEqual(content)
      expect(gunzipSync(compressed('gz'))).toEqual(content)
    }
  })

  it('the built widget contains a client without a user interface, which uses no page APIs', () => {
    const texts = code(/^(client|chunks\/core)\.js$/)
    for (const text of texts) expect(text).not.toMatch(/attachShadow|createElement|querySelector/)
    expect(texts).toHaveLength(2)
  })

  it('the npm package has what its manifest exports', async () => {
    const { exports, files: packed } = JSON.parse(await readFile(join(widgetDist, '../package.json'), 'utf8'))
    const sources = await readdir(source, { recursive: true })
    for (const [name, entry] of Object.entries<string | { types: string; default: string }>(exports)) {
      if (name === './package.json') continue
      const { types, default: built } = typeof entry === 'string' ? { types: '', default: entry } : entry
      expect(files.map((file) => `./dist/${file.name}`)).toContain(built)
      expect(
        packed.some((pattern: string) => matchesGlob(normalize(built), pattern)),
        built,
      ).toBe(true)
      const declared = /^\.\/dist\/types\/widget\/src\/(.+)\.d\.ts$/.exec(types)?.[1]
      if (types)
        expect(
          [`${declared}.ts`, `${declared}.tsx`].some((path) => sources.includes(path)),
          types,
        ).toBe(true)
    }
  })

  it.each(['index', 'client', 'loader'])(
    'the built %s.js exports exactly the names that docs/widget.md lists',
    async (entry) => {
      const exported = await import(join(widgetDist, `${entry}.js`))
      expect(Object.keys(exported).sort()).toEqual((await documentedExports(entry)).sort())
    },
  )
})

/** Returns the names that docs/widget.md lists as exports of an entry file. */
async function documentedExports(entry: string): Promise<string[]> {
  const document = await readFile(fileURLToPath(new URL('../docs/widget.md', import.meta.url)), 'utf8')
  const [, row = ''] = new RegExp(`^\\| \\S+ \\(\`dist/${entry}\\.js\`\\) \\| (.+) \\|$`, 'm').exec(document) ?? []
  return [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name!)
}

it('the sources of the widget outside of src/ui use no page APIs', async () => {
  const files = (await readdir(source, { recursive: true })).filter(
    (name) => /(?<!\.test)\.ts$/.test(name) && !name.startsWith('ui/'),
  )
  expect(files.length).toBeGreaterThan(10)
  for (const name of files) {
    const code = (await readFile(join(source, name), 'utf8')).replace(/\/\*\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    expect(code, name).not.toMatch(/\b(document|window|navigator|location)\b\s*[.?[]/)
  }
})
