import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { commitOf, lastRelease, upgradableReleases } from '../support/releases.ts'
import { rehearsalFrom } from './config.ts'

const run = promisify(execFile)
export const presentRoot = join(import.meta.dirname, '../..')

/** The commit from which upgrades are rehearsed until the first release. */
const baseline = 'dc071fb9'

/**
 * Returns the version of the last release, or the baseline. The environment variable `REHEARSAL_FROM` can
 * name another version.
 */
export async function lastVersion(): Promise<string> {
  return rehearsalFrom() ?? (await lastRelease(presentRoot))?.version ?? baseline
}

/**
 * Returns the versions that can be upgraded to this source, oldest first, or the baseline; or the one of
 * `REHEARSAL_FROM`.
 */
export async function upgradableVersions(): Promise<string[]> {
  const named = rehearsalFrom()
  if (named !== undefined) return [named]
  const { version } = JSON.parse(await readFile(join(presentRoot, 'package.json'), 'utf8'))
  const releases = await upgradableReleases(presentRoot, version)
  return releases.length === 0 ? [baseline] : releases.map((release) => release.version)
}

/**
 * Unpacks the source of a release or a commit into a temporary folder. If its lock file differs from the
 * present one, installs its packages; otherwise links the present packages.
 */
export async function unpack(version: string): Promise<{ root: string; remove(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'service-version-'))
  const archive = join(root, 'source.tar')
  await run('git', ['archive', '--output', archive, await commitOf(presentRoot, version)], { cwd: presentRoot })
  await run('tar', ['-xf', archive, '-C', root])
  const locks = await Promise.all(
    [root, presentRoot].map((folder) => readFile(join(folder, 'package-lock.json'), 'utf8')),
  )
  const [own, present] = locks.map((text) => JSON.stringify(packagesOf(text)))
  if (own === present) await symlink(join(presentRoot, 'node_modules'), join(root, 'node_modules'))
  else {
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: root })
  }
  return { root, remove: () => rm(root, { recursive: true, force: true }) }
}

/** The packages of a lock file, without the version of the project itself. */
function packagesOf(lock: string): [path: string, value: unknown][] {
  const { packages } = JSON.parse(lock) as { packages: Record<string, unknown> }
  return Object.entries(packages).filter(([path]) => path.startsWith('node_modules/'))
}
