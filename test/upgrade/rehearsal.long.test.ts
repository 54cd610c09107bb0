import { rm } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { copyWithChanges } from '../support/source-copy.ts'
import { incompatibleChange } from './incompatible-change.ts'
import { rehearse } from './rehearsal.ts'
import { unpack, upgradableVersions } from './versions.ts'

const releases = await upgradableVersions()

it('a release can be upgraded', () => expect(releases).not.toEqual([]))

it.each(releases)(
  'no message or delivery is lost when %s is upgraded, rolled back and upgraded under traffic',
  async (release) => {
    const old = await unpack(release)
    try {
      const report = await rehearse({ oldRoot: old.root, seed: 1, visitors: 8, say: () => {} })
      expect(report.violations).toEqual([])
      expect(report.killed).toEqual([])
      expect(report.operations).toBeGreaterThan(200)
    } finally {
      await old.remove()
    }
  },
)

it('the rehearsal reports a version as incompatible if it uses other operation keys for visitors', async () => {
  const oldRoot = await copyWithChanges([incompatibleChange])
  try {
    const { violations } = await rehearse({ oldRoot, seed: 1, visitors: 8, say: () => {} })
    expect(violations.map(({ rule }) => rule)).toContain('once')
  } finally {
    await rm(oldRoot, { recursive: true })
  }
})
