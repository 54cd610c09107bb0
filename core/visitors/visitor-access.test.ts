import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testDatabase } from '../../test/support/test-database.ts'
import { until } from '../../test/support/until.ts'
import type { CoreContext } from '../context.ts'
import { site, startTestCores, type TestCores } from '../test-core-context.ts'

const database = testDatabase()
let cores: TestCores
let here: CoreContext
let there: CoreContext
beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
  ;[here, there] = cores.cores as [CoreContext, CoreContext]
})
afterAll(() => cores.stop())

const seen = async (core: CoreContext) => {
  const { accessGrant } = await cores.newSession()
  return (await core.visitorAccess.authorize({ accessGrant, origin: site })).session
}

describe('an authorized session', () => {
  it('is unchanged until this core learns of a change on any core', async () => {
    for (const core of [here, there]) {
      const session = await seen(core)
      expect(core.visitorAccess.isUnchanged(session)).toBe(true)
      await here.sessions.revoke(session.sessionId, undefined)
      await until('the change is known', () => !core.visitorAccess.isUnchanged(session))
    }
  })

  it('ends its stream when it changed before the stream opened, without another wake-up', async () => {
    // A core without periodic checks.
    const core = cores.mortalCore(1000)
    const session = await seen(core)
    await core.sessions.revoke(session.sessionId, undefined)
    const closed = new Promise<void>((resolve) => {
      const sink = { opened() {}, event() {}, advanced() {}, paused() {}, closed: () => resolve() }
      void core.subscriptions.open({ id: 1, sink, session, epoch: 'e', start: {} })
    })
    await closed
  })

  it('is changed once its connection is disabled', async () => {
    const session = await seen(here)
    await there.workspaces.setConnectionStatus(session.connectionId, 'disabled', undefined)
    await until('the change is known', () => !here.visitorAccess.isUnchanged(session))
    await there.workspaces.setConnectionStatus(session.connectionId, 'enabled', undefined)
  })
})
