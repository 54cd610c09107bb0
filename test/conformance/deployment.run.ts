import { beforeAll, inject } from 'vitest'
import { allRules } from './all-rules.ts'
import { MissingAccess, missing } from './missing-access.ts'
import type { Suite } from './suite.ts'
import { suiteOf, type Target } from './target.ts'

declare module 'vitest' {
  interface ProvidedContext {
    target: Target
  }
}

// The tests of `npm run conformance`, which check a running deployment.
let suite: Suite

beforeAll(async () => {
  suite = await suiteOf(inject('target'))
})

allRules(
  () => suite,
  missing('the database'),
  () => {
    throw new MissingAccess('a restart of the cores')
  },
  // Without a token, fewer errors can be caused.
  inject('target').serviceToken === undefined ? 14 : 18,
)
