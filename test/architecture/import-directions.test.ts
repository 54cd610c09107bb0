import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { environmentReaders, violationsOf } from './rules.ts'
import { sourceFacts } from './source-facts.ts'

const root = join(import.meta.dirname, '../..')

const sourcesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return /^(node_modules|dist|gen|\..*)$/.test(entry.name) ? [] : sourcesIn(path)
    return /\.[cm]?[jt]sx?$/.test(entry.name) ? [path] : []
  })

const sources = sourcesIn('').map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

const violations = (path: string, text: string) => violationsOf(path, sourceFacts(path, text))

describe('the source', () => {
  it('is found', () => {
    expect(sources.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['core/database/embedded/engine.ts', 'test/architecture/rules.ts', 'vitest.config.ts']),
    )
  })

  it('follows the import directions of the architecture', () => {
    expect(sources.flatMap(({ path, text }) => violations(path, text))).toEqual([])
  })

  it('still uses every exception in the list', () => {
    const reading = sources.filter(({ path, text }) => sourceFacts(path, text).readsEnvironment).map(({ path }) => path)
    expect(Object.keys(environmentReaders).filter((path) => !reading.includes(path))).toEqual([])
  })
})

describe('the check', () => {
  it.each([
    ['core/sessions.ts', `import { app } from '../gateway/app.ts'`],
    ['core/sessions.ts', `import type { App } from '../gateway/app.ts'`],
    ['core/sessions.ts', `export * from '../delivery/worker.ts'`],
    ['core/sessions.ts', `export { worker } from '../delivery/worker.ts'`],
    ['core/sessions.ts', `const { app } = await import('../gateway/app.ts')`],
    ['core/sessions.ts', `let app: import('../gateway/app.ts').App`],
    ['core/sessions.ts', `import '../start.ts'`],
    ['core/sessions.ts', `import { testDatabase } from '../test/support/test-database.ts'`],
    ['core/sessions.ts', `import { routes } from './rpc/session.ts'`],
    ['core/visitors/session-store.ts', `import { server } from '../server.ts'`],
    ['core/sessions.ts', `import { MongoClient } from 'mongodb'`],
    ['core/sessions.ts', `import type { Db } from 'mongodb'`],
    ['core/sessions.ts', `import { ObjectId } from 'mongodb/lib/bson.js'`],
    ['core/server.ts', `import fastify from 'fastify'`],
    ['delivery/worker.ts', `import cors from '@fastify/cors'`],
    ['gateway/app.ts', `import { sessions } from '../core/sessions.ts'`],
    ['gateway/app.test.ts', `import { sessions } from '../core/sessions.ts'`],
    ['gateway/routes/deep/events.ts', `import { sessions } from '../../../core/sessions.ts'`],
    ['delivery/worker.ts', `import { leads } from '../core/leads.ts'`],
    ['delivery/worker.ts', `import { app } from '../gateway/app.ts'`],
    ['widget/src/client.ts', `import { Session } from '#proto/session/v1/session_pb.js'`],
    ['widget/src/client.ts', `import { app } from '../../gateway/app.ts'`],
    ['gateway/app.ts', `import { createServiceWidget } from '@service/widget'`],
    ['gateway/tool.cjs', `const { sessions } = require('../core/sessions.ts')`],
    ['core/sessions.ts', `const port = process.env.PORT`],
    ['core/sessions.ts', `const port = process['env'].PORT`],
    ['core/sessions.ts', `const port = globalThis.process.env.PORT`],
    ['core/sessions.ts', `const { env } = process`],
    ['core/sessions.ts', `import { env as settings } from 'node:process'`],
    ['widget/src/client.ts', `document.title = 'x'`],
    ['widget/src/client.ts', `const page = window.document`],
    ['widget/src/client.ts', `const page = { document }`],
  ])('rejects in %s: %s', (path, text) => {
    expect(violations(path, text)).toEqual([expect.stringContaining(path)])
  })

  it.each([
    ['core/sessions.ts', `import { Session } from '#proto/session/v1/session_pb.js'`],
    ['core/sessions.ts', `import { events } from './store/events.ts'`],
    [
      'core/sessions.ts',
      `// import { app } from '../gateway/app.ts'\nconst text = "import '../gateway/app.ts'; process.env"`,
    ],
    ['core/visitors/session-store.ts', `import { MongoClient } from 'mongodb'`],
    ['core/sessions.test.ts', `import { MongoClient } from 'mongodb'`],
    ['core/sessions.test.ts', `import { testDatabase } from '../test/support/test-database.ts'`],
    ['core/visitors/session-store.ts', `const save = (document: object) => document`],
    ['core/config.ts', `const port = process.env.PORT`],
    ['core/main.ts', `import { createServer } from './server.ts'`],
    ['gateway/app.ts', `import fastify from 'fastify'; import cors from '@fastify/cors'`],
    ['dev/start.ts', `import { createApp } from './gateway/app.ts'; import { createServer } from './core/server.ts'`],
    ['test/end-to-end/send.test.ts', `import { createServiceWidget } from '../../widget/src/index.ts'`],
    ['widget/src/ui/panel.ts', `document.title = 'x'`],
    ['widget/src/client.ts', `const name = { document: 1 }.document`],
  ])('allows in %s: %s', (path, text) => {
    expect(violations(path, text)).toEqual([])
  })

  it('throws on a file with a syntax error', () => {
    expect(() => violations('core/sessions.ts', 'import { from')).toThrow('core/sessions.ts')
  })
})
