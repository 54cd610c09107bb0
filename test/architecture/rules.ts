import { posix } from 'node:path'
import type { SourceFacts } from './source-facts.ts'

/** What each folder may import of the others, besides itself. `test/`, `bench/`, `dev/` and `docs/` may import all. */
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

/** Packages with one home, besides the bench, which builds peers of the service with them. */
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

/** Files besides `config.ts` that read the environment, each with its reason. */
export const environmentReaders: Record<string, string> = {
  'bench/processes.ts': 'hands PATH and the like on to the processes that it starts, and nothing else',
  'deploy/compose/init-replica-set.js': 'is run by mongosh in a container, which is told its secrets so',
  'test/deployment/image.ts': 'hands PATH and the like on to the commands of the Dockerfile, and nothing else',
  'test/documents/operating.test.ts': 'hands PATH and the like on to the commands of the document, and nothing else',
  'test/support/chromium.ts': 'hands the environment on to the browser, whose fonts it may have to name',
  'test/chaos/moved-clock.ts': 'is loaded before everything else, and told by the suite which file holds its clock',
  'test/support/spawned-process.ts': 'hands PATH and the like on to the processes that it starts, and nothing else',
}

export const isTest = (path: string) =>
  path.startsWith('test/') || /(\.test\.[cm]?[jt]sx?|\/test-[\w-]+\.ts)$/.test(path)

/** What a file does that its place does not allow, one sentence each. */
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
    return allowed ? [] : [`${path} imports ${imported}, which has its home elsewhere`]
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

/** The imported file's path from the project's root, undefined for a package. */
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
