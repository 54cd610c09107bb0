import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inProject, isTest } from './rules.ts'
import { sourceFacts } from './source-facts.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)

/** The rows of the table "One of each". */
const rows = read('ARCHITECTURE.md')
  .split('## One of each\n')[1]!
  .split('\n## ')[0]!
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| Purpose'))
  .map((line) => {
    const [, purpose = '', file = '', users = ''] = line.split('|')
    return { purpose: purpose.trim(), file: namesIn(file)[0] ?? '', users: namesIn(users) }
  })

const importsOf = (path: string) =>
  sourceFacts(path, read(path)).imports.flatMap((imported) => inProject(path, imported) ?? [])

/** Whether code has a mechanism of its own, by the one file of the purpose. */
const secondForms: Record<string, (code: string) => boolean> = {
  'contract/errors.ts': (code) => /getOption\(\w+, rule\)|ErrorCodeSchema|case 40\d:\s*return Code\./.test(code),
  'core/mongodb/leases.ts': (code) =>
    /\$inc: \{[^}]*token/i.test(code) || /findOneAndUpdate\(\s*\{[^}]*\$lte: now/.test(code),
  'core/concurrency/pace.ts': (code) => /performance\.now\(\) - \w+\)\s*\*|pauseFactor/.test(code),
  'core/privacy/data-store.ts': (code) => new Set(code.match(/\b\w+\.deleteMany\(/g)).size > 2,
}

const product = globSync('{contract,core,gateway,delivery,platform}/**/*.ts', {
  cwd: root,
  exclude: ['**/node_modules/**'],
})
  .map((path) => path.split(posix.sep).join('/'))
  .filter((path) => !isTest(path))

describe('each row of "One of each" in ARCHITECTURE.md', () => {
  it.each(rows)('names a file that each of its users imports, or that imports them: $purpose', ({ file, users }) => {
    expect([file, ...users].filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(users.length).toBeGreaterThan(0)
    const imported = importsOf(file)
    const apart = users.filter((user) => !imported.includes(user) && !importsOf(user).includes(file))
    expect(apart).toEqual([])
  })
})

describe('a second mechanism for a purpose', () => {
  it.each(Object.entries(secondForms))('does not exist beside %s', (file, isSecond) => {
    expect(rows.map((row) => row.file)).toContain(file)
    expect(product.filter((path) => path !== file && isSecond(read(path)))).toEqual([])
  })

  it.each([
    ['contract/errors.ts', `const { httpStatus } = getOption(value, rule)`],
    ['contract/errors.ts', `switch (httpStatus) { case 404: return Code.NotFound }`],
    ['core/mongodb/leases.ts', `jobs.updateOne(due, { $set: { until }, $inc: { fencingToken: 1 } })`],
    ['core/mongodb/leases.ts', `jobs.findOneAndUpdate({ nextAt: { $lte: now } }, { $set: { nextAt: until } })`],
    ['core/concurrency/pace.ts', `await delay((performance.now() - began) * 4)`],
    ['core/privacy/data-store.ts', `a.deleteMany({}); b.deleteMany({}); c.deleteMany({})`],
  ])('is found beside %s: %s', (file, code) => {
    expect(secondForms[file]!(code)).toBe(true)
  })
})
