// Builds the npm packages, or one, and prints the paths of their tarballs: `npm run make -- pack [package] [folder]`.
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { buildWidget } from '../../widget/build.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const compiler = join(root, 'node_modules/.bin/tsc')

/** Returns the path of the tarball, like the next functions. */
export async function packWidget(folder: string): Promise<string> {
  await buildWidget(0)
  await run(compiler, ['-p', join(root, 'widget/tsconfig.build.json')])
  return pack(join(root, 'widget'), folder)
}

export async function packWebhooks(folder: string): Promise<string> {
  await rm(join(root, 'webhooks/dist'), { recursive: true, force: true })
  await run(compiler, ['-p', join(root, 'webhooks/tsconfig.build.json')])
  return pack(join(root, 'webhooks'), folder)
}

/** Packs the client with the generated services. */
export async function packCoreClient(folder: string): Promise<string> {
  const staging = join(folder, 'core-client')
  await rm(staging, { recursive: true, force: true })
  await run(compiler, ['-p', join(root, 'core-client/tsconfig.build.json'), '--outDir', join(staging, 'dist')])
  await cp(join(root, 'proto/gen/service'), join(staging, 'proto'), { recursive: true })
  await cp(join(root, 'proto/service'), join(staging, 'proto/service'), { recursive: true })
  for (const name of ['core-client/README.md', 'LICENSE'])
    await cp(join(root, name), join(staging, name.replace(/.*\//, '')))
  await writeFile(join(staging, 'package.json'), JSON.stringify(await coreClientManifest(staging), null, 2))
  const tarball = await pack(staging, folder)
  await rm(staging, { recursive: true })
  return tarball
}

async function coreClientManifest(staging: string) {
  const { version, license, dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const used = await importedPackages(staging)
  return {
    name: '@service/core-client',
    version,
    description: "Client of Service's cores for internal services, with the generated services.",
    license,
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20' },
    imports: { '#proto/*': './proto/*' },
    exports: {
      '.': { types: './dist/core-client/index.d.ts', default: './dist/core-client/index.js' },
      './proto/*.js': { types: './proto/*.d.ts', default: './proto/*.js' },
      './proto/*.proto': './proto/*.proto',
      './package.json': './package.json',
    },
    files: ['dist', 'proto'],
    dependencies: Object.fromEntries(Object.entries(dependencies).filter(([name]) => used.has(name))),
  }
}

async function importedPackages(folder: string) {
  const found = new Set<string>()
  for (const name of await readdir(folder, { recursive: true })) {
    if (!/\.(js|d\.ts)$/.test(name)) continue
    const code = await readFile(join(folder, name), 'utf8')
    for (const [, imported] of code.matchAll(/\b(?:from|import)\s*\(?["']([^"'.#][^"']*)["']/g))
      if (!isBuiltin(imported!)) found.add(/^(@[^/]+\/)?[^/]+/.exec(imported!)![0])
  }
  return found
}

async function pack(source: string, folder: string) {
  await mkdir(folder, { recursive: true })
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', resolve(folder)], {
    cwd: source,
  })
  // Up to npm 11, `npm pack` prints an array. Later versions print an object.
  const [{ filename }] = Object.values(JSON.parse(stdout)) as [{ filename: string }]
  return join(folder, filename)
}

if (import.meta.main) {
  const packs = { widget: packWidget, 'core-client': packCoreClient, webhooks: packWebhooks }
  const [name = '', ...rest] = process.argv.slice(2)
  const isNamed = Object.hasOwn(packs, name)
  const [folder = join(root, '.cache/packages')] = isNamed ? rest : [name, ...rest].filter(Boolean)
  const named = isNamed ? [packs[name as keyof typeof packs]] : Object.values(packs)
  for (const pack of named) console.log(await pack(folder))
}
