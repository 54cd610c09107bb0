// `npm run conformance -- pack [folder]`: bundles the rules and their command as `@service/conformance` and writes the
// tarball into the folder (`.cache/packages`). Prints the path of the tarball.
import { execFile } from 'node:child_process'
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'vite'
import manifest from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')
const { version, license } = manifest
const dist = join(import.meta.dirname, 'dist')

/** Packs `@service/conformance`. Returns the path of the tarball. */
export async function packConformance(folder: string): Promise<string> {
  await rm(dist, { recursive: true, force: true })
  const imported = await bundle()
  const all = { ...manifest.dependencies, ...manifest.devDependencies }
  const dependencies = Object.fromEntries(Object.entries(all).filter(([name]) => imported.has(name)))
  const contents = {
    name: '@service/conformance',
    version,
    description: "Checks a running deployment of Service against the rules of the widget's public contract.",
    license,
    type: 'module',
    // The versions of Node that Vitest supports.
    engines: { node: '>=22.12' },
    bin: { conformance: './main.js' },
    dependencies,
  }
  await writeFile(join(dist, 'package.json'), JSON.stringify(contents, undefined, 2))
  await copyFile(join(root, 'LICENSE'), join(dist, 'LICENSE'))
  await copyFile(join(import.meta.dirname, 'README.md'), join(dist, 'README.md'))
  await mkdir(folder, { recursive: true })
  await promisify(execFile)('npm', ['pack', '--ignore-scripts', '--pack-destination', resolve(folder)], { cwd: dist })
  return join(folder, `service-conformance-${version}.tgz`)
}

/** Bundles the project's own modules. Returns the names of the packages that the bundle imports. */
async function bundle(): Promise<Set<string>> {
  const built = await build({
    configFile: false,
    root: import.meta.dirname,
    logLevel: 'warn',
    // Of the root folder's package.json, the bundle has the version only.
    plugins: [{ name: 'version', load: (id) => (id.endsWith('/package.json') ? JSON.stringify({ version }) : null) }],
    build: {
      ssr: true,
      target: 'node22',
      outDir: dist,
      minify: false,
      rolldownOptions: {
        input: ['main.ts', 'deployment.run.ts'].map((name) => join(import.meta.dirname, name)),
        external: (id) => /^[\w@]/.test(id),
        // The rules import modules that also start local stacks. They stay out of the bundle.
        treeshake: { moduleSideEffects: false },
        output: { entryFileNames: '[name].js', chunkFileNames: '[name].js' },
      },
    },
  })
  const { output } = built as Extract<typeof built, { output: unknown }>
  const imports = output.flatMap((chunk) => (chunk.type === 'chunk' ? [...chunk.imports, ...chunk.dynamicImports] : []))
  const packages = imports.filter((name) => /^[\w@]/.test(name) && !isBuiltin(name))
  return new Set(packages.map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)![0]))
}

if (import.meta.main) console.log(await packConformance(process.argv[2] ?? join(root, '.cache/packages')))
