import { join } from 'node:path'
import { expect, it } from 'vitest'
import { seededFaults } from '../conformance/seeded-faults.ts'
import { changedFile } from '../support/source-copy.ts'
import { knownBugs } from './known-bugs.ts'

const root = join(import.meta.dirname, '../..')

it.each([...knownBugs, ...seededFaults].flatMap(({ name, changes }) => changes.map((change) => ({ name, change }))))(
  'the text that the seeded bug “$name” replaces occurs exactly once in the source',
  async ({ change }) => {
    const { source } = await changedFile(root, change)
    expect(source).toContain(change.to)
  },
)
