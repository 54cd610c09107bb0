import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const sources = globSync('{core,gateway,delivery,core-client,widget/demo,examples}/**/*.ts', { cwd: root }).filter(
  (path) => !/\.test\.ts$|\/test-[\w-]+\.ts$/.test(path),
)

const secret = '[\\w.]*(?:token|secret|signature|hmac|mac|grant|assertion|password|authorization)'
/** What a secret may be held against: that it is there at all, or is no text. */
const harmless = "(?!undefined\\b|null\\b|''|\"\"|'string')"
const comparison = new RegExp(`\\b${secret}\\s*[!=]==?\\s*${harmless}[\\w('"]|[!=]==?\\s*${secret}\\b(?!\\.|\\()`, 'i')

/** Comparing a secret with `===` tells by its time how much of it was right: `equalInConstantTime` is for that. */
const isTelling = (line: string) => comparison.test(line)

it('no secret is compared in a time that tells of it', () => {
  expect(sources.length).toBeGreaterThan(150)
  const found = sources.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => (isTelling(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
  )
  expect(found).toEqual([])
})

it.each([
  'if (token === stored.token)',
  'renewalToken !== expected',
  'expected === signature',
  'mac == given',
  'a.secret === b',
])('the check finds %s', (line) => expect(isTelling(line)).toBe(true))

it.each([
  'token === undefined',
  "accessGrant === ''",
  'tokens === 3',
  'token.length === 3',
  'grantExpiresAt === other',
])('the check lets %s be', (line) => expect(isTelling(line)).toBe(false))
