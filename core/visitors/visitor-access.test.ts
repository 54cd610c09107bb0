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

describe('a session that was authorised', () => {
  it('is known to be the same until this core hears of a change, made here or elsewhere', async () => {
    for (const core of [here, there]) {
      const session = await seen(core)
      expect(core.visitorAccess.isStill(session)).toBe(true)
      await here.sessions.revoke(session.sessionId, undefined)
      await until('the change is known', () => !core.visitorAccess.isStill(session))
    }
  })

  it('ends its stream when it changed in between, though nobody tells of it again', async () => {
    // A core that never looks round by itself.
    const core = cores.mortalCore(1000)
    const session = await seen(core)
    await core.sessions.revoke(session.sessionId, undefined)
    const closed = new Promise<void>((resolve) => {
      const sink = { opened() {}, event() {}, advanced() {}, paused() {}, closed: () => resolve() }
      void core.subscriptions.open({ id: 1, sink, session, epoch: 'e', start: {} })
    })
    await closed
  })

  it('is not known to be the same once its connection is disabled', async () => {
    const session = await seen(here)
    await there.workspaces.setConnectionStatus(session.connectionId, 'disabled', undefined)
    await until('the change is known', () => !here.visitorAccess.isStill(session))
    await there.workspaces.setConnectionStatus(session.connectionId, 'enabled', undefined)
  })
})
