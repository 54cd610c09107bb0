import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Release, readReleases } from '../../dev/releases.ts'

const run = promisify(execFile)

/** Returns the last release whose commit is recorded. */
export async function lastRelease(root: string): Promise<Release | undefined> {
  return readReleases(root).findLast(({ commit }) => commit !== undefined)
}

/**
 * Returns the releases that can be upgraded to a version, oldest first: those of its major version whose commits
 * are recorded.
 */
export async function upgradableReleases(root: string, version: string): Promise<Release[]> {
  const major = version.split('.')[0]
  return readReleases(root).filter((each) => each.commit !== undefined && each.version.split('.')[0] === major)
}

/**
 * Returns the commit of a release, named `1.0.0` or `v1.0.0`, or of any other name that Git knows.
 *
 * @throws Error if this clone does not have the commit
 */
export async function commitOf(root: string, name: string): Promise<string> {
  const release = readReleases(root).find(({ version }) => version === name.replace(/^v/, ''))
  const revision = `${release?.commit ?? name}^{commit}`
  const found = await run('git', ['rev-parse', '--verify', '--quiet', revision], { cwd: root }).catch(() => undefined)
  if (found === undefined)
    throw new Error(`${name} is not in this clone. Fetch the whole history: git fetch --unshallow`)
  return found.stdout.trim()
}
