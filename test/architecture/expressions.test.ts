import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkExpression, sourceExpressions } from './expressions.ts'

/** The expressions whose running time was found to be linear. The long test checks all of them again. */
const list = join(import.meta.dirname, 'linear-expressions.txt')
const checked = existsSync(list) ? readFileSync(list, 'utf8').split('\n').filter(Boolean) : []

it('the regular expressions of the source take linear time for every text', { timeout: 600_000 }, async () => {
  const expressions = sourceExpressions()
  expect(expressions.length).toBeGreaterThan(100)
  const unknown = expressions.filter((each) => !checked.includes(each))
  expect(Object.fromEntries(unknown.map((each) => [each, checkExpression(each)]))).toEqual(
    Object.fromEntries(unknown.map((each) => [each, 'safe'])),
  )
  await expect(`${expressions.join('\n')}\n`).toMatchFileSnapshot(list)
})

it.each(['/[.,]+$/', '/\\s*;\\s*/', '/^(a+)+$/', '/<a[^>]*>/g'])('the check detects that %s is not linear', (slow) => {
  expect(checkExpression(slow)).toMatch(/polynomial|exponential/)
})
