import { join } from 'node:path'
import { expect, it } from 'vitest'
import { seededFaults } from '../conformance/seeded-faults.ts'
import { knownSuspicions } from '../replica-set/known-suspicions.ts'
import { changedFile } from '../support/source-copy.ts'
import { knownBugs } from './known-bugs.ts'

const root = join(import.meta.dirname, '../..')

const seeded = [...knownBugs, ...seededFaults, ...knownSuspicions]

it.each(seeded.flatMap(({ name, changes }) => changes.map((change) => ({ name, change }))))(
  'the text that the seeded bug “$name” replaces occurs exactly once in the source',
  async ({ change }) => {
    const { source } = await changedFile(root, change)
    expect(source).toContain(change.to)
  },
)

it('no seeded bug names a comment of the source, because comments are rewritten', () => {
  const replaced = seeded.flatMap(({ changes }) => changes.map(({ from }) => from))
  expect(replaced.filter((from) => /(^|\s)\/[/*]/.test(from))).toEqual([])
})
