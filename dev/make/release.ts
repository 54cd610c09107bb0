// `npm run make -- release 1.0.0-rc` from a clean worktree: sets the version, dates the changelog, keeps protos
// and widget files as released, and commits. Writes tarballs, bill of materials and checksums into
// `dist/release/1.0.0-rc`, and records the release in `releases.json`. A second commit adds the hash of the
// first.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { releasedWidgets, widgetDist } from '../../widget/build.ts'
import { type Release, readReleases, writeReleases } from '../releases.ts'
import { packCoreClient, packWebhooks, packWidget } from './pack.ts'

const root = join(import.meta.dirname, '../..')
const workspaces = ['webhooks', 'widget']
const inRoot = { cwd: root, maxBuffer: 64 * 1024 * 1024 }
const run = async (file: string, ...args: string[]) => (await promisify(execFile)(file, args, inRoot)).stdout

/** Changes a file of the project. Throws if nothing changes. */
async function edit(path: string, change: (text: string) => string) {
  const before = await readFile(join(root, path), 'utf8')
  const after = change(before)
  if (after === before) throw new Error(`${path} has nothing to change`)
  await writeFile(join(root, path), after)
}

const today = new Date().toISOString().slice(0, 10)
/** A release candidate comes before its release. */
const numbersOf = (version: string) => [
  ...version.replace('-rc', '').split('.').map(Number),
  version.endsWith('-rc') ? 0 : 1,
]

function isLater(next: string, current: string) {
  const [one, other] = [numbersOf(next), numbersOf(current)]
  const different = one.findIndex((number, index) => number !== other[index])
  return different >= 0 && one[different]! > other[different]!
}

async function requireReleasable(version: string, current: string) {
  if (!/^\d+\.\d+\.\d+(-rc)?$/.test(version))
    throw new Error('npm run make -- release VERSION, for example 1.0.0 or 1.0.0-rc')
  if (!isLater(version, current)) throw new Error(`${version} is not later than ${current}`)
  if ((await run('git', 'status', '--porcelain')) !== '') throw new Error('Commit or stash your changes first.')
  const [, unreleased = ''] =
    /^## Unreleased\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(await readFile(join(root, 'CHANGELOG.md'), 'utf8')) ?? []
  if (!unreleased.includes('- ')) throw new Error('CHANGELOG.md has no unreleased changes')
}

/** Files that name the version, and the text before it. */
const imageTags = [
  ['deploy/kubernetes/overlays/example/kustomization.yaml', 'newTag: '],
  ['docs/operating.md', 'registry.example.com/service:'],
  ['Dockerfile', 'LABEL org.opencontainers.image.version='],
  ['deploy/kubernetes/overlays/example/kustomization.yaml', 'app.kubernetes.io/version: '],
] as const

async function setVersion(version: string, current: string) {
  for (const path of ['package.json', ...workspaces.map((folder) => `${folder}/package.json`)])
    await edit(path, (text) => text.replace(`"version": "${current}"`, `"version": "${version}"`))
  await edit('package-lock.json', (text) => {
    const lock = JSON.parse(text)
    lock.version = version
    for (const part of ['', ...workspaces]) lock.packages[part].version = version
    return `${JSON.stringify(lock, null, 2)}\n`
  })
  for (const [path, before] of imageTags)
    await edit(path, (text) => text.replaceAll(`${before}${current}`, `${before}${version}`))
  await edit('CHANGELOG.md', (text) => text.replace('## Unreleased\n', `## Unreleased\n\n## ${version} - ${today}\n`))
}

/** Keeps the built widget in the repository, because later versions serve it to pages that pin it. */
async function keepWidget() {
  const { path }: { path: string } = JSON.parse(await readFile(join(widgetDist, 'widget.json'), 'utf8'))
  const hash = path.split('/').at(-2)!
  for (const name of await readdir(join(widgetDist, 'widget/v1', hash)))
    if (name.endsWith('.js')) await cp(join(widgetDist, 'widget/v1', hash, name), join(releasedWidgets, hash, name))
}

interface LockedPackage {
  version: string
  license?: string
  integrity?: string
  dev?: boolean
  link?: boolean
}

/**
 * Returns the deployed packages in the format CycloneDX. `npm sbom` omits packages that are also peers of
 * development packages, such as the database's driver.
 */
async function billOfMaterials(version: string) {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))
  const deployed = Object.entries(lock.packages as Record<string, LockedPackage>).filter(
    ([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link,
  )
  const components = deployed.map(([path, { version, license, integrity = '' }]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const [algorithm, hash] = integrity.split('-')
    return {
      type: 'library',
      'bom-ref': path,
      name,
      version,
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      ...(license !== undefined && { licenses: [{ expression: license }] }),
      ...(algorithm === 'sha512' && {
        hashes: [{ alg: 'SHA-512', content: Buffer.from(hash!, 'base64').toString('hex') }],
      }),
    }
  })
  const component = { type: 'application', 'bom-ref': 'service', name: 'service', version }
  const bill = { bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, metadata: { component }, components }
  return `${JSON.stringify(bill, null, 2)}\n`
}

async function writeFiles(version: string): Promise<{ folder: string; sha256: Release['sha256'] }> {
  const folder = join(root, 'dist/release', version)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await packWidget(folder)
  await packCoreClient(folder)
  await packWebhooks(folder)
  await keepWidget()
  await writeFile(join(folder, 'sbom.cdx.json'), await billOfMaterials(version))
  const buf = join(root, 'node_modules/@bufbuild/buf/bin/buf')
  await run(process.execPath, buf, 'build', '-o', 'proto/released.binpb', '--exclude-source-info')
  await copyFile(join(root, 'proto/released.binpb'), join(folder, 'protos.binpb'))
  const sha256: Release['sha256'] = {}
  for (const name of (await readdir(folder)).sort())
    sha256[name] = createHash('sha256')
      .update(await readFile(join(folder, name)))
      .digest('hex')
  const sums = Object.entries(sha256).map(([name, sum]) => `${sum}  ${name}\n`)
  await writeFile(join(folder, 'SHA256SUMS'), sums.join(''))
  return { folder, sha256 }
}

async function commit(message: string) {
  await run('git', 'add', '--all')
  await run('git', 'commit', '--quiet', '--message', message)
}

const version = process.argv[2] ?? ''
try {
  const { version: current } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  await requireReleasable(version, current)
  await setVersion(version, current)
  const { folder, sha256 } = await writeFiles(version)
  const earlier = readReleases(root)
  const release: Release = { version, date: today, sha256 }
  writeReleases(root, [...earlier, release])
  await commit(`Release ${version}`)
  release.commit = (await run('git', 'rev-parse', 'HEAD')).trim()
  writeReleases(root, [...earlier, release])
  await commit(`Record the commit of release ${version}`)
  console.log(`Released ${version}: ${folder}\nPush both commits; publish the tarballs.`)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
