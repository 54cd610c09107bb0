import { posix } from 'node:path'
import type { SourceFacts } from './source-facts.ts'

/** Folders from which each folder may import. `test/`, `bench/`, `dev/` and `docs/` may import from all folders. */
const mayImport: Record<string, string[]> = {
  proto: [],
  platform: [],
  contract: ['proto'],
  'core-client': ['proto', 'platform'],
  core: ['proto', 'core-client', 'platform', 'contract'],
  admin: ['proto', 'core-client', 'platform', 'contract'],
  gateway: ['proto', 'core-client', 'platform', 'contract'],
  delivery: ['proto', 'core-client', 'platform', 'contract'],
  serve: ['proto', 'core-client', 'platform', 'contract', 'core', 'gateway', 'delivery', 'admin'],
  browser: [],
  widget: ['browser', 'contract'],
  webhooks: [],
  console: ['proto', 'platform', 'contract', 'browser'],
}

/**
 * Packages that only files matching `home` may import. The bench is exempt, because it builds
 * competing servers with some of these packages.
 */
const packageHomes: { packages: RegExp; home: RegExp; inTests: boolean }[] = [
  { packages: /^(mongodb|bson)$/, home: /^(core|dev\/engine|bench)\//, inTests: true },
  { packages: /^@0q\/embedded-mongodb$/, home: /^(dev\/engine|bench)\//, inTests: true },
  { packages: /^(fastify|fastify-plugin|@fastify\/.*)$/, home: /^(gateway|bench)\//, inTests: false },
  { packages: /^(prom-client|@opentelemetry\/.*)$/, home: /^platform\/observability\//, inTests: true },
]

/**
 * The layers of the core, from the lowest to the highest. A file may import files of its own layer
 * and of lower layers. Imports of types follow the same rule.
 */
const coreLayers = [
  /^core\/(ids|errors|rules|log-event|repairs|page-token|metrics|config)\.ts$/,
  /^core\/concurrency\//,
  /^core\/mongodb\//,
  /^core\/keys\//,
  /^core\/idempotency\//,
  /^core\/(bus|core|bound|stored-key)\.ts$/,
  /^core\/wakeups\//,
  /^core\/log\//,
  /^core\/streams\//,
  /^core\/workspaces\//,
  /^core\/availability\//,
  /^core\/pictures\//,
  /^core\/mail\//,
  /^core\/operators\//,
  /^core\/sessions\//,
  /^core\/bans\//,
  /^core\/consents\//,
  /^core\/identity\//,
  /^core\/visitors\//,
  /^core\/leads\//,
  /^core\/search\//,
  /^core\/conversations\//,
  /^core\/reports\//,
  /^core\/commands\//,
  /^core\/deliveries\//,
  /^core\/feed\//,
  /^core\/notices\//,
  /^core\/privacy\//,
  /^core\/database\//,
  /^core\/context\.ts$/,
  /^core\/transport\//,
  /^core\/rpc\//,
  /^core\/server\.ts$/,
  /^core\/(start-core|run-core|main|migrate|token)\.ts$/,
]

/** The layers of the widget, likewise: the vocabulary, the rooms of the client, the client, the user interface. */
const widgetLayers = [
  /^widget\/src\/vocabulary\//,
  /^widget\/src\/transport\//,
  /^widget\/src\/(session|messages|features|identity)\//,
  /^widget\/src\/client\//,
  /^widget\/src\/(ui|react|vue)\/|^widget\/src\/[\w-]+\.ts$/,
]

/** Returns the index of the layer of a core file, from 0. Returns -1 if the file is in no layer. */
export const layerOf = (path: string) => coreLayers.findIndex((layer) => layer.test(path))

/**
 * Returns true for a model. A model has only types and pure rules, so it may import only other
 * models and the lowest layer.
 */
const isModel = (path: string) => /^core\/[\w-]+\/(?:[\w-]+-)?model\.ts$/.test(path)

/**
 * Files that build or start a process. Only files that match `onlyFrom` may import files that match
 * `layer`. The pattern `^$` matches no file.
 */
const upperLayers: { layer: RegExp; onlyFrom: RegExp }[] = [
  { layer: /^\w+\/main\.ts$/, onlyFrom: /^serve\/run\.ts$/ },
  { layer: /^delivery\/worker\.ts$/, onlyFrom: /^(delivery\/main|serve\/parts)\.ts$/ },
  { layer: /^gateway\/(app|server)\.ts$/, onlyFrom: /^(gateway\/main|serve\/parts)\.ts$/ },
]

/** Files besides `config.ts` that may read the environment, with the reason. */
export const environmentReaders: Record<string, string> = {
  'docs/examples/bot.ts': 'is a program of its own, whose token is in its environment',
  'docs/examples/crm-relay.ts': 'is a program of its own, whose secret is in its environment',
  'docs/examples/hubspot-relay.ts': 'is a program of its own, whose token is in its environment',
  'docs/examples/salesforce-relay.ts': 'is a program of its own, whose secret is in its environment',
  'deploy/compose/init-replica-set.js': 'runs in mongosh in a container, which gets its secrets by environment',
  'test/documents/operating.long.test.ts': 'passes PATH and HOME to the commands of the document',
  'test/support/chromium.ts': 'passes the environment to the browser and sets its font folder',
  'test/chaos/moved-clock.ts': 'is preloaded and gets the path of its clock file by environment',
  'test/packages/fixtures/next/app/page.jsx': 'is a page of a host, which reads its own settings',
  'test/support/processes.ts': 'passes PATH and similar variables to the processes that it starts',
}

export const isTest = (path: string) => /(^|\/)test\/|\.test\.[cm]?[jt]sx?$/.test(path)

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
  const from = partOf(path)
  const to = partOf(target)
  const allowed = mayImport[from]
  const testsSupport = isTest(path) && target.startsWith('test/support/')
  if (allowed && to !== from && !allowed.includes(to) && !testsSupport)
    return [`${path} imports ${target}: ${from} may not import ${to || 'the root'}`]
  const layer = upperLayers.find((rule) => rule.layer.test(target))
  if (layer && allowed && !isTest(path) && !layer.onlyFrom.test(path))
    return [`${path} imports ${target}, which stands above it`]
  if (isTest(path)) return []
  const [own, other] = [path, target].map((file) => widgetLayers.findIndex((layer) => layer.test(file)))
  if (own !== -1 && other! > own!) return [`${path} imports ${target}, which is in a higher layer of the widget`]
  return coreViolations(path, target)
}

/** Imports the types of its members from all layers, and nothing else. */
export const coreObject = 'core/core.ts'

const coreViolations = (path: string, target: string): string[] => {
  const [from, to] = [layerOf(path), layerOf(target)]
  if (path === coreObject) return []
  if (from === -1 || to === -1) return []
  if (to > from) return [`${path} imports ${target}, which is in a higher layer of the core`]
  if (isModel(path) && !isModel(target) && to > 0) return [`${path} imports ${target}: a model imports models only`]
  return []
}

/**
 * Returns the folder that contains a file, in the form `part/folder`: `core/log` for
 * `core/log/event-log.ts`. A file directly in the part's folder is returned as it is: `core/bus.ts`.
 */
export const folderOf = (path: string) => path.split('/').slice(0, 2).join('/')

/** Returns the import cycles among these files. Each cycle is a list of files. */
export const cyclesIn = (imports: ReadonlyMap<string, string[]>): string[][] => {
  const circles: string[][] = []
  const done = new Set<string>()
  const visit = (path: string, above: string[]) => {
    if (above.includes(path)) circles.push(above.slice(above.indexOf(path)))
    if (done.has(path) || above.includes(path)) return
    for (const imported of imports.get(path) ?? []) visit(imported, [...above, path])
    done.add(path)
  }
  for (const path of imports.keys()) visit(path, [])
  return circles
}

/** Returns the path of the imported file from the project root, or undefined for a package. */
export const inProject = (path: string, imported: string): string | undefined => {
  if (imported.startsWith('#proto/')) return imported.replace('#proto/', 'proto/gen/service/')
  if (/^@service\/widget($|\/)/.test(imported)) return 'widget/src/index.ts'
  if (/^\.{1,2}(\/|$)/.test(imported)) return posix.join(posix.dirname(path), imported)
  return undefined
}

/** Returns the part of the product that a path belongs to: `core` for `core/a/b.ts`, empty for a file at the root. */
const partOf = (path: string) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : '')

/** Returns the package of an import: `@fastify/cors` for `@fastify/cors/types`. */
const packageOf = (imported: string) =>
  imported
    .split('/')
    .slice(0, imported.startsWith('@') ? 2 : 1)
    .join('/')
