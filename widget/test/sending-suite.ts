import { type KeyValueStorage, storageFor } from '../../browser/storage.ts'
import type { WidgetEventMap } from '../src/vocabulary/types.ts'
import { codeOf, type SuiteContext, same } from './suite-context.ts'

/** Tests of the headless client: sending: retries, lost answers and storage. */
export const sendingSuite: Record<string, (context: SuiteContext) => Promise<void>> = {
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
    same(tab.count('message.retrying'), 0)
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
    same((await context.stored()).flat().length, 1)
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
    const sentMs = tab.clock.now()
    tab.client.sendMessage('Hello')
    await context.until(() => tab.count('message.retrying') === 1)
    tab.kill()
    const after = context.tab({ storage: tab.storage })
    await after.online()
    await context.until(() => after.states()[0] === 'queued')
    // The clocks of both tabs begin at the same time.
    same(after.clock.now() - sentMs >= 30_000, true)
  },

  async 'a refused message fails at once, and the next one is sent'(context) {
    const tab = context.tab()
    await tab.online()
    await context.set({ refuseSends: [{ status: 400, code: 'ValidationFailed', retryable: false }] })
    tab.client.sendMessage('bad')
    tab.client.sendMessage('good')
    await context.until(() => tab.states().join() === 'queued,failed')
    same([tab.bodies(), tab.count('message.retrying')], [['good', 'bad'], 0])
    const exhausted = tab.events.filter(({ name }) => name === 'message.retry.exhausted')
    same(
      exhausted.map(({ payload }) => (payload as WidgetEventMap['message.retry.exhausted']).error),
      [{ code: 'ValidationFailed', recoverable: false }],
    )
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

  async 'too many messages, and messages before the start, are refused before they are shown'(context) {
    const tab = context.tab()
    const send = (body: string) => codeOf(Promise.resolve().then(() => tab.client.sendMessage(body)))
    same(await send('early'), 'not_started')
    await tab.online()
    tab.network.online = false
    for (let count = 0; count < 50; count += 1) tab.client.sendMessage(`message ${count}`)
    same(await send('one more'), 'outbox_full')
    same(tab.bodies().length, 50)
  },
}
