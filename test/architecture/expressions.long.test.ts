import { expect, it } from 'vitest'
import { checkExpression, sourceExpressions } from './expressions.ts'

it('every regular expression of the source takes linear time', { timeout: 600_000 }, () => {
  const results = sourceExpressions().map((each) => [each, checkExpression(each)])
  expect(results.filter(([, result]) => result !== 'safe')).toEqual([])
})
