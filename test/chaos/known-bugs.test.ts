import { join } from 'node:path'
import { expect, it } from 'vitest'
import { changedFile, knownBugs } from './known-bugs.ts'

const root = join(import.meta.dirname, '../..')

it.each(knownBugs.flatMap(({ name, changes }) => changes.map((change) => ({ name, change }))))(
  'the text that the known bug “$name” replaces occurs exactly once in the source',
  async ({ change }) => {
    const { source } = await changedFile(root, change)
    expect(source).toContain(change.to)
  },
)
