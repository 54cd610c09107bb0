import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const documents = [
  ...globSync('*.md', { cwd: root }),
  ...globSync('{docs/**,core-client,webhooks,widget}/*.md', { cwd: root }),
]

/** Returns the anchors that GitHub creates for the headings of a document. */
const anchorsOf = (document: string) =>
  [...readFileSync(document, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

describe.each(documents)('%s', (document) => {
  const text = readFileSync(join(root, document), 'utf8')

  it('the document links only to existing files', () => {
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target = '']) => target)
    expect(targets.filter((target) => !existsSync(join(root, dirname(document), target)))).toEqual([])
  })

  it('the document has no conflict markers of a merge', () => {
    expect(text).not.toMatch(/^(<{7}|={7}|>{7})( |$)/m)
  })

  it('the document links only to existing headings', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
    const missing = links.filter(([, target = '', anchor = '']) => {
      const path = target === '' ? join(root, document) : join(root, dirname(document), target)
      return existsSync(path) && !anchorsOf(path).includes(anchor)
    })
    expect(missing.map(([link]) => link)).toEqual([])
  })

  it('the document names only existing files', () => {
    const paths = [
      ...text.matchAll(
        /`((?:admin|bench|browser|core|core-client|delivery|dev|gateway|platform|proto|test|webhooks|widget|docs)\/[\w./-]*)`/g,
      ),
    ].map(([, path = '']) => path)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})
