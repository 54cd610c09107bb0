import type { SessionView } from '../src/vocabulary/types.ts'
import { assertionOf } from './assertion-of.ts'
import { codeOf, type SuiteContext, same } from './suite-context.ts'

/** Tests of the headless client: identification, logout and a change of the person. */
export const identitySuite: Record<string, (context: SuiteContext) => Promise<void>> = {
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

  async 'a session that goes on after an identification keeps its renewal token'(context) {
    const tab = context.tab({ options: { identityProvider: async () => assertionOf('ada') } })
    await tab.online()
    const before = tab.client.session()
    same((await tab.client.identify())?.sessionId, before?.sessionId)
    tab.clock.advance(616_000)
    await context.until(async () => (await context.requests('POST /sessions/renew')).length === 1)
    tab.client.sendMessage('Still here')
    await context.until(() => tab.states().join() === 'queued')
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
}
