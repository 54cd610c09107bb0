import { posix } from 'node:path'
import type { SourceFacts } from './source-facts.ts'

/** The folders that each folder may import. `test/`, `bench/`, `dev/` and `docs/` may import all. */
const mayImport: Record<string, string[]> = {
  proto: [],
  platform: [],
  'core-client': ['proto', 'platform'],
  core: ['proto', 'platform'],
  admin: ['proto', 'core-client'],
  gateway: ['proto', 'core-client', 'platform'],
  delivery: ['proto', 'core-client', 'platform'],
  widget: [],
  console: ['proto', 'widget'],
}

/** Packages that only one place may import. The bench is exempt, because it builds peers with them. */
const packageHomes: { packages: RegExp; home: RegExp; inTests: boolean }[] = [
  {
    packages: /^(mongodb|bson|@0q\/embedded-mongodb)$/,
    home: /^(core\/database\/.*|core\/[\w-]+\/([\w-]+-)?(store|queue|settlements|removal)\.ts$|core\/idempotency\/.*|bench\/.*)/,
    inTests: true,
  },
  { packages: /^(fastify|fastify-plugin|@fastify\/.*)$/, home: /^(gateway|bench)\//, inTests: false },
  { packages: /^(prom-client|@opentelemetry\/.*)$/, home: /^platform\/observability\//, inTests: true },
]

/** Within a part, an upper layer may import a lower one, not the other way round. */
const upperLayers: { layer: RegExp; onlyFrom: RegExp }[] = [
  { layer: /^(\w+\/main|core\/(migrate|token))\.ts$/, onlyFrom: /^$/ },
  { layer: /^core\/(server|core)\.ts$/, onlyFrom: /^core\/(main|workspaces\/demo-seed)\.ts$/ },
  { layer: /^core\/context\.ts$/, onlyFrom: /^core\/(rpc\/|server\.ts$|core\.ts$|main\.ts$)/ },
  { layer: /^core\/rpc\/(?!access|operator)/, onlyFrom: /^core\/(rpc\/|server\.ts$|main\.ts$)/ },
  { layer: /^delivery\/app\.ts$/, onlyFrom: /^delivery\/main\.ts$/ },
  { layer: /^gateway\/(app|server)\.ts$/, onlyFrom: /^gateway\/main\.ts$/ },
]

/** Files besides `config.ts` that may read the environment, with the reason. */
export const environmentReaders: Record<string, string> = {
  'bench/processes.ts': 'passes PATH and similar variables to the processes that it starts',
  'deploy/compose/init-replica-set.js': 'runs in mongosh in a container, which gets its secrets by environment',
  'test/deployment/image.ts': 'passes PATH and HOME to the commands of the Dockerfile',
  'test/documents/operating.test.ts': 'passes PATH and HOME to the commands of the document',
  'test/support/chromium.ts': 'passes the environment to the browser and sets its font folder',
  'test/chaos/moved-clock.ts': 'is preloaded and gets the path of its clock file by environment',
  'test/support/spawned-process.ts': 'passes PATH and similar variables to the processes that it starts',
}

export const isTest = (path: string) =>
  path.startsWith('test/') || /(\.test\.[cm]?[jt]sx?|\/test-[\w-]+\.ts)$/.test(path)

/** Returns one sentence for each rule that a file violates. */
export const violationsOf = (path: string, facts: SourceFacts): string[] => [
  ...facts.imports.flatMap((imported) => importViolations(path, imported)),
  ...(facts.readsEnvironment && !/(^|\/)config\.ts$/.test(path) && !(path in environmentReaders)
    ? [`${path} reads process.env, which only config.ts files do`]
    : []),
  ...(facts.touchesDocument && /^widget\/src\/(?!ui\/)/.test(path) && !isTest(path)
    ? [`${path} touches document, which only widget/src/ui/ does`]
    : []),
]

const importViolations = (path: string, imported: string): string[] => {
  const target = inProject(path, imported)
  if (target === undefined) {
    const rule = packageHomes.find(({ packages }) => packages.test(packageOf(imported)))
    const allowed = rule === undefined || rule.home.test(path) || (rule.inTests && isTest(path))
    return allowed ? [] : [`${path} imports ${imported}, which only other folders may import`]
  }
  const from = folderOf(path)
  const to = folderOf(target)
  const allowed = mayImport[from]
  const testsSupport = isTest(path) && target.startsWith('test/support/')
  if (allowed && to !== from && !allowed.includes(to) && !testsSupport)
    return [`${path} imports ${target}: ${from} may not import ${to || 'the root'}`]
  const layer = upperLayers.find((rule) => rule.layer.test(target))
  if (layer && allowed && !isTest(path) && !layer.onlyFrom.test(path))
    return [`${path} imports ${target}, which stands above it`]
  return []
}

/** The imported file's path from the project root, or undefined for a package. */
const inProject = (path: string, imported: string): string | undefined => {
  if (imported.startsWith('#proto/')) return imported.replace('#proto/', 'proto/gen/service/')
  if (/^@service\/widget($|\/)/.test(imported)) return 'widget/src/index.ts'
  if (/^\.{1,2}(\/|$)/.test(imported)) return posix.join(posix.dirname(path), imported)
  return undefined
}

/** `core` of `core/a/b.ts`, empty for a file at the root. */
const folderOf = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')

/** `@fastify/cors` of `@fastify/cors/types`. */
const packageOf = (imported: string) =>
  imported
    .split('/')
    .slice(0, imported.startsWith('@') ? 2 : 1)
    .join('/')
