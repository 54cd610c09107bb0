import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
const section = text.split('## A change step by step')[1]?.split('\n## ')[0] ?? ''
const files = [...section.matchAll(/`([\w./-]+\.(?:ts|tsx|proto|md))`/g)].map(([, path]) => path!)

it('the files of the worked example in CONTRIBUTING.md exist', () => {
  expect(files.length).toBeGreaterThanOrEqual(10)
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

it('the worked example in CONTRIBUTING.md has at most 12 files', () => {
  const rows = section.split('\n').filter((line) => /^\| \d/.test(line))
  expect(rows.flatMap((row) => row.split('|')[2]!.match(/`[^`]+`/g)).length).toBeLessThanOrEqual(12)
})
