import { execFile } from 'node:child_process'
import { appendFile, cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inheritedEnvironment } from '../../test/support/processes.ts'
import { commitOf, lastRelease } from '../../test/support/releases.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
let copy: string

const git = async (...args: string[]) =>
  (await run('git', ['-c', 'user.name=Test', '-c', 'user.email=test@service.example', ...args], { cwd: copy })).stdout
const release = (version: string) =>
  run(process.execPath, ['dev/make/release.ts', version], {
    cwd: copy,
    env: { ...inheritedEnvironment(), ...author },
  })

const author = {
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@service.example',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@service.example',
}

/** Copies the project into a repository of its own. */
beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'release-test-'))
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const name of stdout.split('\0').filter((each) => each !== '')) await cp(join(root, name), join(copy, name))
  await git('init', '--quiet')
  await appendFile(join(copy, '.git/info/exclude'), 'node_modules\n')
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
  await git('add', '--all')
  await git('commit', '--quiet', '--message', 'Begin')
})
afterAll(() => rm(copy, { recursive: true, force: true }))

test('a release needs a later version, a changelog and a clean worktree', async () => {
  const refusal = (version: string) => release(version).catch(({ stderr }) => stderr)
  expect(await refusal('0.0.9')).toContain('is not later than')
  expect(await refusal('next')).toContain('npm run make -- release VERSION')
  expect(await refusal('0.2.0-rc')).toContain('is not later than')
  await appendFile(join(copy, 'README.md'), 'a change\n')
  expect(await refusal('9.0.0')).toContain('Commit or stash')
  await git('checkout', '--quiet', '.')
  expect((await git('log', '--format=%s')).trim()).toBe('Begin')
})

test('a release is a commit with tarballs, bill of materials, protos and checksums, which the next commit records', async () => {
  await release('9.0.0')
  expect(await git('status', '--porcelain')).toBe('')
  expect(await git('log', '--format=%s')).toBe('Record the commit of release 9.0.0\nRelease 9.0.0\nBegin\n')
  expect(await git('tag')).toBe('')
  expect(await readFile(join(copy, 'CHANGELOG.md'), 'utf8')).toMatch(/## Unreleased\n\n## 9\.0\.0 - \d{4}-\d\d-\d\d\n/)
  const overlay = await readFile(join(copy, 'deploy/kubernetes/overlays/example/kustomization.yaml'), 'utf8')
  expect(overlay.match(/newTag: 9\.0\.0/g)).toHaveLength(1)
  const folder = join(copy, 'dist/release/9.0.0')
  const packages = ['core-client', 'webhooks', 'widget'].map((name) => `service-${name}-9.0.0.tgz`)
  const files = ['protos.binpb', 'sbom.cdx.json', ...packages]
  expect((await readdir(folder)).sort()).toEqual(['SHA256SUMS', ...files])
  await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: folder })
  const recorded = await lastRelease(copy)
  expect(Object.keys(recorded!.sha256)).toEqual(files)
  expect(await readFile(join(folder, 'SHA256SUMS'), 'utf8')).toContain(recorded!.sha256['protos.binpb'])
  expect(`${await commitOf(copy, 'v9.0.0')}\n`).toBe(await git('rev-parse', 'HEAD~1'))
  const { components } = JSON.parse(await readFile(join(folder, 'sbom.cdx.json'), 'utf8'))
  const { dependencies } = JSON.parse(await readFile(join(copy, 'package.json'), 'utf8'))
  const deployed = components.map(({ purl }: { purl: string }) =>
    decodeURIComponent(purl).replace(/^pkg:npm\/(.+)@.*$/, '$1'),
  )
  expect(Object.keys(dependencies).filter((name) => !deployed.includes(name))).toEqual([])
  expect(deployed).not.toContain('vitest')
})

test('the build of a later version still has each released widget, unchanged and compressed', async () => {
  const folder = join(copy, 'widget/released')
  const released = await readdir(folder)
  const texts = join(copy, 'widget/src/ui/languages/en.ts')
  await appendFile(texts, `\nexport const later = 'later'\nconsole.info(later)\n`)
  await rm(join(copy, 'widget/dist'), { recursive: true })
  await run(process.execPath, ['widget/build.ts', '--clean'], { cwd: copy })
  const versions = join(copy, 'widget/dist/widget/v1')
  const { path } = JSON.parse(await readFile(join(copy, 'widget/dist/widget.json'), 'utf8'))
  const built = (await readdir(versions)).filter((hash) => !released.includes(hash))
  expect(built).toHaveLength(1)
  expect(path).toContain(built[0])
  for (const hash of released) {
    const chat = await readFile(join(folder, hash, 'chat.js'))
    expect((await readFile(join(versions, hash, 'chat.js'))).equals(chat)).toBe(true)
    expect(await readdir(join(versions, hash))).toEqual(expect.arrayContaining(['widget.js.br', 'chat.js.gz']))
  }
})
