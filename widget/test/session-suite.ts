import { type SuiteContext, same } from './suite-context.ts'

/** Tests of the headless client: streams, and the start, renewal and end of sessions. */
export const sessionSuite: Record<string, (context: SuiteContext) => Promise<void>> = {
  async 'a stream without heartbeats is replaced, and no message is lost'(context) {
    const tab = context.tab()
    await context.set({ silentStreams: 1 })
    await tab.online()
    await context.agentSays('Anyone there?')
    same(tab.bodies(), [])
    tab.clock.advance(38_000)
    await context.until(() => tab.bodies().length === 1)
    same((await context.requests('GET /events')).length, 2)
  },

  async 'a lost event is detected by the next heartbeat'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ dropEvents: 1 })
    await context.agentSays('left out')
    await context.agentSays('brought')
    await context.until(() => tab.bodies().length === 1)
    await context.heartbeat()
    await context.until(() => tab.bodies().length === 2)
    same([tab.bodies(), tab.count('message.received')], [['left out', 'brought'], 2])
  },

  async 'the chat ends after too many replay.reset.required events'(context) {
    const tab = context.tab()
    await context.set({ resets: 1_000 })
    await tab.client.start()
    await context.until(() => tab.client.connection() === 'ended')
    const { payload } = tab.events.findLast(({ name }) => name === 'error')!
    same(payload, { code: 'realtime_terminal_failure', recoverable: false })
    same((await context.requests('GET /events')).length < 6, true)
  },

  async 'a page in the back/forward cache closes its stream, and shows all messages when it is restored'(context) {
    const tab = context.tab()
    await tab.online()
    tab.signal('pagehide')
    await context.until(async () => (await context.streams()) === 0)
    await context.agentSays('While you were away')
    tab.signal('pageshow')
    await context.until(() => tab.bodies().length === 1)
    same(await context.streams(), 1)
  },

  async 'a renewal whose answer is lost is retried with the same idempotency key'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ loseRenewals: 1 })
    tab.clock.advance(616_000)
    await context.until(async () => (await context.requests('POST /sessions/renew')).length === 2)
    const renewals = await context.requests('POST /sessions/renew')
    same(new Set(renewals.map(({ headers }) => headers['idempotency-key'])).size, 1)
    tab.client.sendMessage('Still here')
    await context.until(() => tab.states().join() === 'queued')
  },

  async 'a revocation during a send fails the message, and a reload does not send it'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ stallSends: 1 })
    tab.client.sendMessage('Hello')
    await context.until(async () => (await context.stalled()) === 1)
    await context.revoke()
    await context.until(() => tab.client.connection() === 'ended')
    await context.release()
    same([tab.states(), tab.count('session.revoked')], [['failed'], 1])
    same(tab.client.messages()[0]?.error?.recoverable, false)
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.client.start()
    same([after.client.ended()?.event, (await context.requests('POST /messages')).length], ['session.revoked', 1])
    same((await context.stored()).flat(), [])
  },

  async 'if a session was closed without an identification, the chat ends and the messages stay visible'(context) {
    const tab = context.tab({ options: { identityProvider: async () => undefined } })
    await tab.online()
    await context.agentSays('Hello')
    await context.until(() => tab.bodies().length === 1)
    await context.closeSession()
    await context.until(() => tab.client.connection() === 'ended')
    same([tab.client.ended()?.event, tab.bodies(), tab.client.canStartNew()], ['session.closed', ['Hello'], true])
  },

  async 'a reset with closeSession ends the session on the service and begins a new one'(context) {
    const tab = context.tab()
    await tab.online()
    await context.agentSays('Hello')
    await context.until(() => tab.bodies().length === 1)
    const before = tab.client.session()?.sessionId
    tab.client.setDraft('Dear')
    await tab.client.resetVisitor({ closeSession: true })
    same([tab.client.session()?.sessionId === before, tab.bodies(), tab.client.draft()], [false, [], 'Dear'])
    same((await context.requests('POST /sessions/close'))[0]?.body, { scope: 'continuity' })
    await tab.client.resetVisitor({ clearDraft: true })
    same(tab.client.draft(), '')
  },

  async 'a cleared history stays cleared after a reload, and the session continues'(context) {
    const tab = context.tab()
    await tab.online()
    await context.agentSays('old')
    await context.until(() => tab.bodies().length === 1)
    await tab.client.resetVisitor({ clearHistory: true })
    await context.agentSays('new')
    await context.until(() => tab.bodies().length === 1)
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    await context.until(() => after.bodies().length > 0)
    same([after.bodies(), (await context.requests('POST /sessions')).length], [['new'], 1])
  },

  async 'unread count and draft survive a reload'(context) {
    const tab = context.tab()
    await tab.online()
    await context.agentSays('one')
    await context.until(() => tab.client.unread() === 1)
    tab.client.markRead()
    same(tab.client.unread(), 0)
    tab.client.setDraft('Well, ')
    tab.kill()
    await context.agentSays('two')
    const after = context.tab({ storage: tab.storage })
    await after.online()
    await context.until(() => after.client.unread() === 1)
    same(after.client.draft(), 'Well, ')
  },
}
