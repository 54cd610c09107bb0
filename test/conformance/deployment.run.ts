import { afterAll, beforeAll } from 'vitest'
import { allRules } from './all-rules.ts'
import { targetFile } from './config.ts'
import { MissingAccess, missing } from './missing-access.ts'
import { countTests, skipped } from './rule.ts'
import type { Suite } from './suite.ts'
import { readTarget, suiteOf } from './target.ts'

// `npm run conformance`: checks a running deployment.
let suite: Suite

beforeAll(async () => {
  suite = await suiteOf(await readTarget(targetFile()))
})

allRules(
  () => suite,
  missing('the database'),
  () => {
    throw new MissingAccess('a restart of the cores')
  },
)

afterAll(() => {
  for (const [name, reason] of skipped) console.info(`skipped: ${name}: ${reason}`)
  console.info(`${skipped.size} of ${countTests()} tests need more than addresses and credentials`)
})
