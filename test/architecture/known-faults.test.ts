import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { knownBugs } from '../chaos/known-bugs.ts'
import { seededFaults } from '../conformance/seeded-faults.ts'
import { knownSuspicions } from '../replica-set/known-suspicions.ts'
import { changedFile } from '../support/source-copy.ts'
import { incompatibleChange } from '../upgrade/incompatible-change.ts'

const root = join(import.meta.dirname, '../..')

describe('each fault that a suite must find', () => {
  const incompatible = { name: 'an incompatible version', changes: [incompatibleChange] }
  const faults = [...knownBugs, ...seededFaults, ...knownSuspicions, incompatible]
  it.each(faults)('changes text that the source has once: $name', async ({ changes }) => {
    for (const change of changes) await expect(changedFile(root, change)).resolves.toBeDefined()
  })

  it('changes no comment, because comments are rewritten', () => {
    const replaced = faults.flatMap(({ changes }) => changes.map(({ from }) => from))
    expect(replaced.filter((from) => /(^|\s)\/[/*]/.test(from))).toEqual([])
  })
})
