import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const sources = globSync(
  '{core,gateway,delivery,core-client,contract,platform,admin,webhooks/src,widget/demo,docs/examples}/**/*.ts',
  { cwd: root },
).filter((path) => !/\.test\.ts$|\/test\//.test(path))

const secret = '[\\w.]*(?:token|secret|signature|hmac|mac|grant|assertion|password|authorization)'
/** Operands that code may compare with a secret by `===`: undefined, null, an empty text or a type name. */
const harmless = "(?!undefined\\b|null\\b|''|\"\"|'string')"
const comparison = new RegExp(`\\b${secret}\\s*[!=]==?\\s*${harmless}[\\w('"]|[!=]==?\\s*${secret}\\b(?!\\.|\\()`, 'i')

/**
 * Returns true if the line compares a secret with `===` or `!==`. The duration of such a comparison
 * shows how many characters matched. Code must use `equalInConstantTime` instead.
 */
const isTimingLeak = (line: string) => comparison.test(line)

it('the source compares no secret with === or !==', () => {
  expect(sources.length).toBeGreaterThan(150)
  const found = sources.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) => (isTimingLeak(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
  )
  expect(found).toEqual([])
})

it.each([
  'if (token === stored.token)',
  'renewalToken !== expected',
  'expected === signature',
  'mac == given',
  'a.secret === b',
])('the check detects %s', (line) => expect(isTimingLeak(line)).toBe(true))

it.each([
  'token === undefined',
  "accessGrant === ''",
  'tokens === 3',
  'token.length === 3',
  'grantExpiresAt === other',
])('the check allows %s', (line) => expect(isTimingLeak(line)).toBe(false))
