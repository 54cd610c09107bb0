import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commitOf, lastRelease, upgradableReleases } from '../../test/support/releases.ts'
import { readReleases } from '../releases.ts'

const root = join(import.meta.dirname, '../..')
const git = (...args: string[]) => execFileSync('git', args, { cwd: root })
const isShallow = `${git('rev-parse', '--is-shallow-repository')}`.trim() === 'true'
const releases = readReleases(root)

it('each version of the changelog is a recorded release', () => {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  const described = [...changelog.matchAll(/^## (\d+\.\d+\.\d+(?:-rc)?) - (\S+)$/gm)].map(([, version, date]) => ({
    version,
    date,
  }))
  expect(releases.map(({ version, date }) => ({ version, date })).toReversed()).toEqual(described)
})

describe.skipIf(isShallow).each(releases.filter(({ commit }) => commit !== undefined))(
  'the recorded release $version',
  ({ version, commit, sha256 }) => {
    it('is a commit of this history with that version and those protos', () => {
      git('merge-base', '--is-ancestor', commit!, 'HEAD')
      expect(JSON.parse(`${git('show', `${commit}:package.json`)}`).version).toBe(version)
      const protos = git('show', `${commit}:proto/released.binpb`)
      expect(createHash('sha256').update(protos).digest('hex')).toBe(sha256['protos.binpb'])
    })

    it('is found by its version, with and without a v', async () => {
      expect([await commitOf(root, version), await commitOf(root, `v${version}`)]).toEqual([commit, commit])
    })
  },
)

it('the last release is the newest one', async () => {
  expect((await lastRelease(root))?.version).toBe(releases.at(-1)?.version)
})

it('releases of another major version cannot be upgraded', async () => {
  const recorded = releases.filter(({ commit }) => commit !== undefined)
  expect(await upgradableReleases(root, '0.9.0')).toEqual(recorded.filter(({ version }) => version.startsWith('0.')))
  expect(await upgradableReleases(root, '77.0.0')).toEqual([])
})

it('a name that is neither a release nor a commit is rejected with the command that fetches the history', async () => {
  await expect(commitOf(root, '99.0.0')).rejects.toThrow('git fetch --unshallow')
})
