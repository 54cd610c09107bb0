import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const documents = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: root })]
const scripts = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts)

/** The anchors that GitHub gives to the headings of a document. */
const anchorsOf = (document: string) =>
  [...readFileSync(document, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

describe.each(documents)('%s', (document) => {
  const text = readFileSync(join(root, document), 'utf8')

  it('links to existing files', () => {
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target = '']) => target)
    expect(targets.filter((target) => !existsSync(join(root, dirname(document), target)))).toEqual([])
  })

  it('links to existing headings', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
    const missing = links.filter(([, target = '', anchor = '']) => {
      const path = target === '' ? join(root, document) : join(root, dirname(document), target)
      return existsSync(path) && !anchorsOf(path).includes(anchor)
    })
    expect(missing.map(([link]) => link)).toEqual([])
  })

  it('names existing files', () => {
    const paths = [
      ...text.matchAll(
        /`((?:admin|bench|core|core-client|delivery|dev|gateway|platform|proto|test|widget|docs)\/[\w./-]*)`/g,
      ),
    ].map(([, path = '']) => path)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('names existing npm scripts', () => {
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script = '']) => script)
    expect(named.filter((script) => !scripts.includes(script))).toEqual([])
  })
})
