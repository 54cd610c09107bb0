import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
const examples = text
  .split('## A change step by step: ')
  .slice(1)
  .map((section) => section.split('\n## ')[0] ?? '')

/** Maximum number of files of each example. */
const maxFiles = [12, 14, 10, 5, 5, 4, 4]

describe.each(examples.map((example, index) => ({ title: example.split('\n')[0], example, max: maxFiles[index]! })))(
  'the worked example of $title in CONTRIBUTING.md',
  ({ example, max }) => {
    it('names files that exist', () => {
      const files = [...example.matchAll(/`([\w./-]+\.(?:ts|tsx|proto|md))`/g)].map(([, path]) => path!)
      expect(files.length).toBeGreaterThanOrEqual(Math.min(8, max))
      expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([])
    })

    it(`has at most ${max} files`, () => {
      const rows = example.split('\n').filter((line) => /^\| \d/.test(line))
      const files = rows.flatMap((row) => row.split('|')[2]!.match(/`[^`]+`/g))
      expect(files.length).toBeLessThanOrEqual(max)
    })
  },
)

it('CONTRIBUTING.md has a maximum for each worked example', () => expect(examples).toHaveLength(maxFiles.length))
