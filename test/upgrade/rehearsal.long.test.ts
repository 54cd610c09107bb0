import { rm } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { copyWithChanges } from '../support/source-copy.ts'
import { incompatibleChange } from './incompatible-change.ts'
import { rehearse } from './rehearsal.ts'
import { lastVersion, unpack } from './versions.ts'

const release = await lastVersion()

it('no message or delivery is lost when the last release is upgraded, rolled back and upgraded under traffic', async () => {
  const old = await unpack(release!)
  try {
    const report = await rehearse({ oldRoot: old.root, seed: 1, visitors: 8, say: () => {} })
    expect(report.violations).toEqual([])
    expect(report.killed).toEqual([])
    expect(report.operations).toBeGreaterThan(200)
  } finally {
    await old.remove()
  }
})

it('the rehearsal reports a version as incompatible if it uses other operation keys for visitors', async () => {
  const oldRoot = await copyWithChanges([incompatibleChange])
  try {
    const { violations } = await rehearse({ oldRoot, seed: 1, visitors: 8, say: () => {} })
    expect(violations.map(({ rule }) => rule)).toContain('once')
  } finally {
    await rm(oldRoot, { recursive: true })
  }
})
