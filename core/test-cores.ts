import { pino } from 'pino'
import { afterAll } from 'vitest'
import { testDatabase } from '../test/support/test-database.ts'
import { type CoreConfig, readCoreConfig } from './config.ts'
import { type CoreContext, createCoreContext } from './context.ts'
import { openDatabase } from './database/database.ts'
import { createEventStore } from './log/event-store.ts'
import type { LogEvent } from './log/model.ts'
import { parseSecretKeys } from './secrets.ts'
import type { VisitorCredentials } from './visitors/visitor-access.ts'
import type { InstallationSettings } from './workspaces/workspace-store.ts'

export interface TestVisitor {
  conversationId: string
  sessionId: string
  workspaceId: string
  siteKey: string
  credentials: VisitorCredentials
}

const origin = 'https://shop.example'

/**
 * Several cores in this process over one database, with a clock that the test advances. Call it at
 * the top level of a file.
 */
export function testCores(count = 2, settings: Partial<CoreConfig> = {}) {
  const { uri, name } = testDatabase()
  const cores: CoreContext[] = []
  const key = `k1:${Buffer.alloc(32, 7).toString('base64')}`
  let skew = 0
  let site: Promise<{ siteKey: string; workspaceId: string }> | undefined
  let visitors = 0
  const now = () => Date.now() + skew

  afterAll(async () => {
    for (const core of cores) await core.stop()
  })

  return {
    now,
    advance(ms: number) {
      skew += ms
    },

    /** Opens the cores. With `started` they follow each other's wake-ups. */
    async open({ started = false } = {}): Promise<CoreContext[]> {
      for (let index = 0; index < count; index += 1) {
        const database = await openDatabase({ uri, name, timeoutMs: 5000 })
        const config = { ...readCoreConfig({}), ...settings }
        const secretKeys = parseSecretKeys(key)
        const core = createCoreContext({ config, secretKeys, database, logger: pino({ level: 'silent' }), now })
        if (started) core.start()
        cores.push(core)
      }
      return cores
    },

    async newSite(more: InstallationSettings = {}) {
      const { workspaces } = cores[0]!
      const { workspaceId } = await workspaces.createWorkspace('Shop')
      const { connectionId } = await workspaces.createConnection(workspaceId, 'Site', undefined)
      const { installation } = await workspaces.createInstallation(
        connectionId,
        { origins: [origin], ...more },
        undefined,
      )
      return { siteKey: installation.publicSiteKey, workspaceId }
    },

    async newVisitor(at?: { siteKey: string; workspaceId: string }): Promise<TestVisitor> {
      site ??= this.newSite()
      const { siteKey, workspaceId } = at ?? (await site)
      visitors += 1
      const { content } = await cores[0]!.sessions.create({
        publicSiteKey: siteKey,
        origin,
        clientInstanceId: `browser-${visitors}`,
        idempotencyKey: `create-${visitors}`,
      })
      const { conversationId, sessionId, accessGrant } = content
      return { conversationId, sessionId, workspaceId, siteKey, credentials: { accessGrant, origin } }
    },

    /** The whole log, including transient events. */
    log: (conversationId: string): Promise<LogEvent[]> =>
      createEventStore(cores[0]!.database.collections).readAfter({ conversationId, after: 0 }, 10_000, {
        transient: true,
      }),
  }
}

export const send = (core: CoreContext, { credentials }: TestVisitor, clientOperationId: string) =>
  core.messages.sendAsVisitor({ credentials, clientOperationId, body: clientOperationId, contentType: 'text' })

export const answer = (core: CoreContext, { conversationId }: TestVisitor, clientOperationId: string) =>
  core.messages.sendAsAgent({ conversationId, clientOperationId, body: clientOperationId })
