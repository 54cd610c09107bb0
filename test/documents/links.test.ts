import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parts } from '../../bench/parts.ts'
import { groups } from '../../dev/command-groups.ts'

const root = join(import.meta.dirname, '../..')
const documents = [
  ...globSync('*.md', { cwd: root }),
  ...globSync('{docs/**,core-client,webhooks,widget}/*.md', { cwd: root }),
]
/** Names that may follow `npm run <script> --`. */
const subcommands: Record<string, string[]> = {
  ...Object.fromEntries(Object.entries(groups).map(([script, commands]) => [script, Object.keys(commands)])),
  bench: [...Object.keys(groups.bench!), ...Object.keys(parts)],
}
const scripts = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts)

/** Returns the anchors that GitHub creates for the headings of a document. */
const anchorsOf = (document: string) =>
  [...readFileSync(document, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

/** Returns the part of a document that is about this version: of the change log, its first section. */
const currentPart = (document: string, text: string) =>
  document === 'CHANGELOG.md' ? text.split('\n## ').slice(0, 2).join('\n## ') : text

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

  it('the document names only existing npm scripts and subcommands', () => {
    const named = [...currentPart(document, text).matchAll(/npm run (?:-s )?([\w:]+)(?: -- ([a-z][\w-]*))?/g)]
    const missing = named.filter(([, script = '', name]) => {
      const known = subcommands[script]
      return !scripts.includes(script) || (name !== undefined && known !== undefined && !known.includes(name))
    })
    expect(missing.map(([command]) => command)).toEqual([])
  })
})
