import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const document = readFileSync(join(root, 'docs/accessibility.md'), 'utf8')

/** Returns the cells of the table below a heading, without its head. */
const tableOf = (heading: string) =>
  (document.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => line.slice(2, -2).split(' | '))

const criteria = tableOf('WCAG 2.2')
const clauses = tableOf('EN 301 549')
const tests = tableOf('The tests')

it('the report has each criterion of WCAG 2.2 A and AA once', () => {
  // The last number of the criteria of each guideline.
  const expected = {
    '1.1': '1',
    '1.2': '1 2 3 4 5',
    '1.3': '1 2 3 4 5',
    '1.4': '1 2 3 4 5 10 11 12 13',
    '2.1': '1 2 4',
    '2.2': '1 2',
    '2.3': '1',
    '2.4': '1 2 3 4 5 6 7 11',
    '2.5': '1 2 3 4 7 8',
    '3.1': '1 2',
    '3.2': '1 2 3 4 6',
    '3.3': '1 2 3 4 7 8',
    '4.1': '2 3',
  }
  const numbers = Object.entries(expected).flatMap(([guideline, last]) =>
    last.split(' ').map((n) => `${guideline}.${n}`),
  )
  expect(numbers).toHaveLength(55)
  expect(criteria.map(([name = '']) => name.split(' ')[0])).toEqual(numbers)
})

it('each row of the report has known results, and a test or a file for what is supported', () => {
  const wrong = [...criteria, ...clauses].filter((cells) => {
    const results = cells.slice(cells.length === 5 ? 2 : 1, -1)
    const reason = cells.at(-1)!
    const isKnown = results.every((result) => ['supports', 'partly', 'not', 'n/a'].includes(result))
    return !isKnown || reason === '' || (results.includes('supports') && !/\*\*|`.*\/|\]\(/.test(reason))
  })
  expect(wrong).toEqual([])
  expect(clauses.length).toBeGreaterThan(10)
})

it('each test that the report names exists, and each named test is evidence of a row', () => {
  const used = [...document.matchAll(/\*\*([a-z-]+)\*\*/g)].map(([, name]) => name!)
  const results = ['supports', 'partly', 'not', 'n/a']
  const names = tests.map(([name]) => name!)
  expect([...new Set(used)].filter((name) => !results.includes(name)).sort()).toEqual(names.sort())
  const missing = tests.filter(([, file = '', title = '']) => {
    const path = join(root, file.replaceAll('`', ''))
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(`'${title}'`)
  })
  expect(missing).toEqual([])
})

it('each file that the report names exists', () => {
  const files = [...document.matchAll(/`([\w-]+\/[\w./-]+\.\w+)`/g)].map(([, file]) => file!)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
})
