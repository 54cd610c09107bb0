import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { type BuiltFile, buildWidget, buildWidgetIfStale, widgetDist } from './build.ts'
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
    expect(sizes).toHaveLength(12)
    for (const { name, bytes, limit } of sizes) {
      expect(bytes, name).toBeGreaterThan(500)
      expect(bytes, name).toBeLessThanOrEqual(limit)
    }
  })

  it('the widget is not rebuilt if no source has changed, and is complete if several processes build at once', async () => {
    expect(await buildWidgetIfStale()).toEqual([])
    const [one, other] = await Promise.all([buildWidget(), buildWidget()])
    expect(one.map(({ name }) => name)).toEqual(other.map(({ name }) => name))
    for (const { name, content } of one) expect(await readFile(join(widgetDist, name))).toEqual(content)
    expect((await readdir(widgetDist)).filter((name) => name.startsWith('.'))).toEqual([])
  })

  it('the built widget uses no API that a strict content security policy forbids, and no storage except session storage', () => {
    for (const text of code(/\.js$/)) {
      expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/)
      expect(text).not.toMatch(/localStorage|document\.cookie|indexedDB/)
    }
  })

  it('the built widget loads the chat from a relative path that contains a content hash', () => {
    const [loader] = code(/^widget\.js$/)
    const chat = files.find(({ name }) => name.startsWith('widget/chat-'))!.name
    expect(loader).toContain(`./${chat}`)
    const text = code(/^widget\/(?!de-|es-|fr-|ar-|ja-)/).join('\n')
    for (const language of ['de', 'es', 'fr', 'ar', 'ja'])
      expect(text).toMatch(new RegExp(`\\./${language}-[\\w-]+\\.js`))
  })

  it('the built widget contains one file for the chat, which imports other chunks only on demand', () => {
    const chat = files.find(({ name }) => name.startsWith('widget/chat-'))!
    expect(String(chat.content)).not.toMatch(/(?:from|import)\s*["'`]\.\//)
    // Names of the chunks that the chat imports on demand, without their hash.
    const later = [...String(chat.content).matchAll(/import\(\s*["'`]\.\/([a-z-]+?)-[\w-]{8}\.js/g)].map(
      ([, name]) => name!,
    )
    expect(later.sort()).toEqual([
      'agent-requests',
      'ar',
      'consent',
      'consent-card',
      'de',
      'es',
      'form-view',
      'fr',
      'identity',
      'ja',
      'renewal',
      'request-card',
      'visitor-reports',
    ])
  })

  it('the built widget contains a client without a user interface, which uses no page APIs', () => {
    const texts = code(/^(client|chunks\/core)\.js$/)
    for (const text of texts) expect(text).not.toMatch(/attachShadow|createElement|querySelector/)
    expect(texts).toHaveLength(2)
  })

  it.each(['index', 'client'])('the built %s.js exports exactly the names that docs/widget.md lists', async (entry) => {
    const exported = await import(join(widgetDist, `${entry}.js`))
    expect(Object.keys(exported).sort()).toEqual((await documentedExports(entry)).sort())
  })
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
