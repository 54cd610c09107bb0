import { type KeyValueStorage, storageFor } from '../src/storage.ts'
import type { SessionView } from '../src/types.ts'
import { assertionOf } from './assertion-of.ts'
import { codeOf, type SuiteContext, same } from './suite-context.ts'
import { tabSuite } from './tab-suite.ts'

/**
 * Tests of the headless client that run in Node and in Chromium. Each test gets its own
 * `SuiteContext`, with a scenario server and simulated tabs.
 */
export const clientSuite: Record<string, (context: SuiteContext) => Promise<void>> = {
  ...tabSuite,

  async 'a message that is written offline is pending, and is sent once when the network returns'(context) {
    const tab = context.tab()
    await tab.online()
    tab.network.online = false
    tab.client.sendMessage('Hello')
    same([tab.count('offline.submitted'), tab.count('message.accepted'), tab.states()], [1, 0, ['pending']])
    same((await context.requests('POST /messages')).length, 0)
    tab.network.online = true
    tab.signal('online')
    await context.until(() => tab.states()[0] === 'queued')
    same(
      (await context.stored()).flat().map(({ body }) => body),
      ['Hello'],
    )
  },

  async 'a message whose answer and stream are lost is retried as the same operation and stored once'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ loseAnswers: 1, dropEvents: 1 })
    tab.client.sendMessage('Hello')
    await context.until(() => tab.states()[0] === 'queued')
    const keys = (await context.requests('POST /messages')).map(({ headers }) => headers['idempotency-key'])
    same([keys.length, new Set(keys).size, (await context.stored()).flat().length], [2, 1, 1])
    same([tab.bodies(), tab.count('message.accepted')], [['Hello'], 1])
  },

  async 'a message whose answer is lost counts as accepted when its event arrives'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ stallAnswers: 1 })
    tab.client.sendMessage('Hello')
    await context.until(() => tab.states()[0] === 'queued')
    same([(await context.requests('POST /messages')).length, tab.bodies()], [1, ['Hello']])
  },

  async 'a retry waits for the Retry-After of a 503 and a 429'(context) {
    for (const code of ['ServiceUnavailable', 'RateLimited']) {
      const tab = context.tab()
      await context.reset()
      await tab.online()
      await context.set({ refuseSends: [{ status: code === 'RateLimited' ? 429 : 503, code, retryAfter: 9 }] })
      tab.client.sendMessage('Hello')
      await context.until(() => tab.count('message.retrying') === 1)
      const askedAtMs = tab.clock.now()
      tab.signal('online')
      await context.until(() => tab.states()[0] === 'queued')
      same(tab.clock.now() - askedAtMs > 8_500, true)
      tab.client.stop()
    }
  },

  async 'the Retry-After of a 429 survives a reload'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ refuseSends: [{ status: 429, code: 'RateLimited', retryAfter: 30 }] })
    tab.client.sendMessage('Hello')
    await context.until(() => tab.count('message.retrying') === 1)
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    const startedMs = after.clock.now()
    await context.until(() => after.states()[0] === 'queued')
    same(after.clock.now() - startedMs > 20_000, true)
  },

  async 'a refused message fails at once, and the next one is sent'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ refuseSends: [{ status: 400, code: 'ValidationFailed', retryable: false }] })
    tab.client.sendMessage('bad')
    tab.client.sendMessage('good')
    await context.until(() => tab.states().join() === 'queued,failed')
    same([tab.bodies(), tab.count('message.retrying'), tab.count('message.retry.exhausted')], [['good', 'bad'], 0, 1])
  },

  async 'if the page is reloaded before the service has received a message, the message is sent once'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ stallSends: 1 })
    tab.client.sendMessage('Hello')
    tab.client.sendMessage('Anyone?')
    await context.until(async () => (await context.stalled()) === 1)
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    await context.release()
    await context.until(() => after.states().join() === 'queued,queued')
    const sends = await context.requests('POST /messages')
    same(new Set(sends.map(({ headers }) => headers['idempotency-key'])).size, 2)
    same(
      (await context.stored()).flat().map(({ body }) => body),
      ['Hello', 'Anyone?'],
    )
    same(after.bodies(), ['Hello', 'Anyone?'])
    same(after.storage.getItem('service.widget.1.pk_friendly.outbox'), null)
  },

  async 'if the page is reloaded between the acceptance of a message and its response, the message is shown once'(
    context,
  ) {
    const tab = context.tab()
    await tab.online()
    await context.set({ stallAnswers: 1, dropEvents: 1 })
    tab.client.sendMessage('Hello')
    await context.until(async () => (await context.stalled()) === 1)
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    await context.until(() => after.states().join() === 'queued')
    same([(await context.stored()).flat().length, after.bodies()], [1, ['Hello']])
  },

  async 'a failed message is still failed after a reload, and a manual retry keeps the operation id'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ refuseSends: [{ status: 503, code: 'ServiceUnavailable', retryAfter: 600 }] })
    const { clientOperationId } = tab.client.sendMessage('Hello')
    await context.until(() => tab.states()[0] === 'failed')
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    same(
      [after.states(), after.client.messages()[0]?.error],
      [['failed'], { code: 'ServiceUnavailable', recoverable: true }],
    )
    same(after.client.retryMessage(clientOperationId!), true)
    await context.until(() => after.states()[0] === 'queued')
    const keys = (await context.requests('POST /messages')).map(({ headers }) => headers['idempotency-key'])
    same(keys, [clientOperationId, clientOperationId])
  },

  async 'a client in memory mode stores nothing that survives a reload'(context) {
    const tab = context.tab({ options: { storage: 'memory' } })
    await tab.online()
    tab.network.online = false
    tab.client.sendMessage('Hello')
    tab.kill()
    const after = context.tab({ options: { storage: 'memory' } })
    await after.online()
    same([after.bodies(), (await context.requests('POST /sessions')).length], [[], 2])
    same(typeof sessionStorage === 'undefined' ? 0 : sessionStorage.length, 0)
  },

  async 'a chat works without storage, and starts a new session after a reload'(context) {
    const full: KeyValueStorage = {
      getItem: () => null,
      setItem() {
        throw new Error('QuotaExceededError')
      },
      removeItem() {},
    }
    const missing = () => {
      throw new Error('SecurityError')
    }
    for (const storage of [storageFor('session', () => full), storageFor('session', missing)]) {
      const tab = context.tab({ storage })
      await tab.online()
      tab.client.sendMessage('Hello')
      await context.until(() => tab.states()[0] === 'queued')
      tab.client.setDraft('Still writing')
      same(tab.client.draft(), 'Still writing')
    }
  },

  async 'too many or too large messages are refused before they are shown'(context) {
    const tab = context.tab()
    await tab.online()
    tab.network.online = false
    for (let count = 0; count < 50; count += 1) tab.client.sendMessage(`message ${count}`)
    same(await codeOf(Promise.resolve().then(() => tab.client.sendMessage('one more'))), 'outbox_full')
    same(tab.bodies().length, 50)
  },

  async 'a stream without heartbeats is replaced, and no message is lost'(context) {
    const tab = context.tab()
    await context.set({ silentStreams: 1 })
    await tab.online()
    await context.agentSays('Anyone there?')
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
    same(
      [tab.errors().includes('realtime_terminal_failure'), (await context.requests('GET /events')).length < 6],
      [true, true],
    )
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

  async 'unsent messages of an expired session are shown as failed, and not sent in the next one'(context) {
    const tab = context.tab()
    await tab.online()
    tab.network.online = false
    tab.client.sendMessage('Hello')
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    after.clock.sleep(10_800_000)
    await after.online()
    same(
      [after.bodies(), after.states(), after.client.retryMessage(after.client.messages()[0]!.key)],
      [['Hello'], ['failed'], false],
    )
    same((await context.requests('POST /messages')).length, 0)
  },

  async 'a first identification keeps messages, the draft and unsent messages'(context) {
    const tab = context.tab({ options: { identityProvider: async (wanted) => wanted && assertionOf('ada', 'Ada') } })
    await tab.online()
    tab.client.sendMessage('Hello')
    await context.until(() => tab.states().join() === 'queued')
    await context.set({ stallSends: 1 })
    tab.client.sendMessage('under way')
    tab.client.sendMessage('waits')
    await context.until(async () => (await context.stalled()) === 1)
    tab.client.setDraft('Dear')
    const before = tab.client.session()
    const after = await tab.client.identify({ externalSubject: 'ada', displayName: 'Countess' })
    same([after?.sessionId === before?.sessionId, after?.identity], [false, { state: 'verified', displayName: 'Ada' }])
    same([after?.conversationId, tab.client.draft()], [before?.conversationId, 'Dear'])
    same(tab.bodies(), ['Hello', 'under way', 'waits'])
    await context.release()
    await context.until(() => tab.states().join() === 'queued,queued,queued')
    await context.agentSays('Welcome')
    await context.until(() => tab.bodies().length === 4)
    same(
      (await context.stored()).map((messages) => messages.map(({ body }) => body)),
      [['Hello', 'under way', 'waits', 'Welcome']],
    )
    same([tab.count('session.closed'), tab.count('message.retry.exhausted'), tab.client.ended()], [0, 0, undefined])
    same(tab.storage.getItem('service.widget.1.pk_friendly')?.includes(assertionOf('ada', 'Ada')), false)
  },

  async 'unsent messages of the previous page are sent once after the visitor is identified'(context) {
    let isKnown = false
    const options = { identityProvider: async () => (isKnown ? assertionOf('ada') : undefined) }
    const tab = context.tab({ options })
    await tab.online()
    await context.set({ stallAnswers: 1 })
    tab.client.sendMessage('Accepted, but not answered')
    await context.until(async () => (await context.stalled()) === 1)
    tab.client.setDraft('Dear')
    tab.kill()
    isKnown = true
    const after = context.tab({ storage: tab.storage, options })
    await after.online()
    await context.until(() => after.states().join() === 'queued')
    same([after.client.session()?.identity.state, after.client.draft()], ['verified', 'Dear'])
    same(
      (await context.stored()).map((messages) => messages.map(({ body }) => body)),
      [['Accepted, but not answered']],
    )
  },

  async 'a tab joins the session that another tab identified, and keeps its own draft and unsent messages'(context) {
    let person: string | undefined
    const options = { identityProvider: async () => person && assertionOf(person) }
    const first = context.tab({ options })
    await first.online()
    first.client.sendMessage('from the first')
    await context.until(() => first.states().join() === 'queued')
    const second = context.tab({ copyOf: first, options })
    await second.online()
    await context.until(() => second.bodies().length === 1)
    second.client.setDraft('Dear')
    second.network.online = false
    second.client.sendMessage('from the second')
    person = 'ada'
    await first.client.identify({ externalSubject: 'ada' })
    await context.until(() => second.client.session()?.identity.state === 'verified')
    second.network.online = true
    second.signal('online')
    await context.until(() => second.states().join() === 'queued,queued' && first.bodies().length === 2)
    same(second.client.session()?.conversationId, first.client.session()?.conversationId)
    same([second.client.draft(), second.count('session.closed'), second.client.ended()], ['Dear', 0, undefined])
    same(
      (await context.stored()).map((messages) => messages.map(({ body }) => body)).filter(({ length }) => length > 0),
      [['from the first', 'from the second']],
    )
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

  async 'messages that are being sent while the person changes are neither shown to nor sent for the next person'(
    context,
  ) {
    let person = 'ada'
    const tab = context.tab({ options: { identityProvider: async () => assertionOf(person) } })
    await tab.online()
    await context.agentSays('For Ada only')
    await context.until(() => tab.bodies().length === 1)
    await context.set({ stallSends: 1 })
    tab.client.setDraft('Dear Ada')
    tab.client.sendMessage("Ada's first")
    tab.client.sendMessage("Ada's second")
    await context.until(async () => (await context.stalled()) === 1)
    const before = tab.client.session()?.sessionId
    person = 'bob'
    await tab.client.identify({ externalSubject: 'bob' })
    same(
      [tab.client.session()?.sessionId === before, tab.bodies(), tab.client.draft(), tab.client.unread()],
      [false, [], '', 0],
    )
    const eventCount = tab.events.length
    await context.release()
    await context.until(() => tab.client.connection() === 'online')
    tab.client.sendMessage('I am Bob')
    await context.until(() => tab.states().join() === 'queued')
    same(tab.bodies(), ['I am Bob'])
    same(
      tab.events.slice(eventCount).filter(({ payload }) => JSON.stringify(payload).includes('Ada')),
      [],
    )
    same(
      (await context.stored()).map((messages) => messages.map(({ body }) => body)),
      [['For Ada only'], ['I am Bob']],
    )
    same(tab.storage.getItem('service.widget.1.pk_friendly.outbox'), null)
  },

  async 'an identification whose answer is lost is retried with the same idempotency key and the old grant'(context) {
    let person = 'ada'
    const tab = context.tab({ options: { identityProvider: async () => assertionOf(person) } })
    await tab.online()
    await context.set({ loseIdentities: 1 })
    person = 'bob'
    await Promise.all([tab.client.identify(), context.until(() => tab.count('session.ready') === 2)])
    const [, first, second] = await context.requests('POST /sessions/identify')
    same(first?.headers['idempotency-key'], second?.headers['idempotency-key'])
    same([tab.client.session()?.identity.state, tab.count('session.closed')], ['verified', 0])
  },

  async 'an identification is retried while the service answers that the same operation is in progress'(context) {
    const tab = context.tab({ options: { identityProvider: async (wanted) => wanted && assertionOf('ada') } })
    await tab.online()
    const busy = { status: 409, code: 'OperationInProgress', retryable: true, retryAfter: 1 }
    await context.set({ refuseIdentities: Array.from({ length: 4 }, () => busy) })
    let after: SessionView | undefined
    const identifying = tab.client.identify({}).then((view) => {
      after = view
    })
    // The condition reads a variable. A condition that sends a request would take longer than the
    // retries that this test waits for.
    await Promise.all([identifying, context.until(() => after)])
    same([after?.identity.state, tab.client.ended()], ['verified', undefined])
    const identifications = await context.requests('POST /sessions/identify')
    same(identifications.length, 5)
    same(new Set(identifications.map(({ headers }) => headers['idempotency-key'])).size, 1)
  },

  async 'a page that is loaded after its connection was enabled again starts a new session'(context) {
    const tab = context.tab()
    await tab.online()
    await context.agentSays('Before')
    await context.until(() => tab.bodies().length === 1)
    await context.disableConnection()
    await context.until(() => tab.client.connection() === 'ended')
    same([tab.client.ended()?.event, tab.client.canStartNew()], ['connection.disabled', false])
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    same([after.client.session()?.continuity.state, after.bodies()], ['new', []])
  },

  async 'a failed identification emits an error and keeps the session'(context) {
    let assertion: string | undefined = assertionOf('ada')
    const tab = context.tab({ options: { identityProvider: async (wanted) => (wanted ? assertion : undefined) } })
    await tab.online()
    tab.client.sendMessage('Hello')
    await context.until(() => tab.states().join() === 'queued')
    const before = tab.client.session()
    same(await codeOf(tab.client.identify({ externalSubject: 'bob' })), 'identity_mismatch')
    assertion = undefined
    same(await codeOf(tab.client.identify({})), 'identity_unavailable')
    assertion = 'nonsense'
    same(await codeOf(tab.client.identify({})), 'IdentityAssertionInvalid')
    same(tab.errors(), ['identity_mismatch', 'identity_unavailable', 'IdentityAssertionInvalid'])
    same([tab.client.session(), tab.bodies()], [before, ['Hello']])
    tab.client.sendMessage('Still here')
    await context.until(() => tab.states().join() === 'queued,queued')
  },

  async 'if the visitor’s identity is unknown at the start, the chat ends with an error and does not continue as anonymous'(
    context,
  ) {
    let isUp = false
    const identityProvider = async () => {
      if (!isUp) throw new Error('down')
      return assertionOf('ada')
    }
    const tab = context.tab({ options: { identityProvider } })
    void tab.client.start()
    await context.until(() => tab.client.connection() === 'ended')
    same(
      [tab.client.ended()?.code, tab.client.session(), tab.client.canStartNew()],
      ['identity_unavailable', undefined, true],
    )
    same([(await context.requests('GET /events')).length, (await context.requests('GET /messages')).length], [0, 0])
    isUp = true
    await tab.client.startNew()
    await context.until(() => tab.client.connection() === 'online')
    same(tab.client.session()?.identity.state, 'verified')
  },

  async 'a logout clears the visitor’s data in the page at once, and continues anonymously'(context) {
    let person: string | undefined = 'ada'
    const tab = context.tab({ options: { identityProvider: async () => person && assertionOf(person) } })
    await tab.online()
    await context.agentSays('For Ada only')
    await context.until(() => tab.bodies().length === 1)
    tab.client.setDraft('Dear')
    person = undefined
    await tab.client.clearIdentity()
    same([tab.client.session()?.identity.state, tab.bodies(), tab.client.draft()], ['anonymous', [], ''])
    await context.until(() => tab.client.connection() === 'online')
    same(tab.storage.getItem('service.widget.1.pk_friendly')?.includes('verified'), false)
    same(tab.count('session.closed'), 0)
  },

  async 'a logout clears the visitor’s data in the page even if its call fails, and then rejects'(context) {
    const tab = context.tab({ options: { identityProvider: async () => assertionOf('ada') } })
    await tab.online()
    await context.agentSays('For Ada only')
    await context.until(() => tab.bodies().length === 1)
    await context.set({ refuseIdentities: [{ status: 403, code: 'OriginNotAllowed', retryable: false }] })
    same(await codeOf(tab.client.clearIdentity()), 'OriginNotAllowed')
    same([tab.bodies(), tab.client.session(), tab.client.connection()], [[], undefined, 'ended'])
    same(tab.storage.getItem('service.widget.1.pk_friendly')?.includes('accessGrant'), false)
  },

  async 'a reload after a logout in another tab shows no data of the former visitor'(context) {
    const tab = context.tab({ options: { identityProvider: async () => assertionOf('ada') } })
    await tab.online()
    await context.agentSays('For Ada only')
    await context.until(() => tab.bodies().length === 1)
    tab.client.setDraft('Dear')
    tab.kill()
    const after = context.tab({ storage: tab.storage, options: { identityProvider: async () => undefined } })
    const seen: string[] = []
    after.client.on('messages.changed', ({ messages }) => seen.push(...messages.map(({ body }) => body)))
    await after.online()
    same(
      [after.client.session()?.identity.state, after.bodies(), after.client.draft(), seen],
      ['anonymous', [], '', []],
    )
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

  async 'a logout in one tab clears the data of the other tab, whose session ends with session.closed'(context) {
    let person: string | undefined = 'ada'
    const options = { identityProvider: async () => person && assertionOf(person) }
    const first = context.tab({ options })
    await first.online()
    const second = context.tab({ copyOf: first, options })
    await second.online()
    await context.agentSays('For Ada only')
    await context.until(() => first.bodies().length === 1 && second.bodies().length === 1)
    person = undefined
    await first.client.clearIdentity()
    await context.until(() => second.client.connection() === 'ended')
    same([second.bodies(), second.client.ended()?.event, second.count('session.closed')], [[], 'session.closed', 1])
    same([first.client.session()?.identity.state, first.client.ended()], ['anonymous', undefined])
  },

  async 'unsent messages of a verified visitor are not shown after their session expired'(context) {
    const tab = context.tab({ options: { identityProvider: async () => assertionOf('ada') } })
    await tab.online()
    tab.network.online = false
    tab.client.sendMessage('Ada writes')
    tab.client.setDraft('Ada goes on')
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    after.clock.sleep(10_800_000)
    await after.online()
    same([after.bodies(), after.client.draft(), after.client.session()?.identity.state], [[], '', 'anonymous'])
    same((await context.requests('POST /messages')).length, 0)
  },
}
