import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { agent, expectAccessible, field, online, useFeatures, write } from './widget-feature-page.ts'

const features = useFeatures({ TYPING_SECONDS: '4' })

describe('typing', () => {
  it('is shown to the other side, and ends when the message is sent', async () => {
    const { page, conversationId, complaints } = await features.visit()
    await online(page)
    await write(page, 'Hello')
    const seen: string[] = []
    const watching = new AbortController()
    const inbox = features.operator().messaging.watchConversations({}, { signal: watching.signal })
    const watched = (async () => {
      for await (const { frame } of inbox) {
        if (frame.case === 'ready') seen.push('ready')
        if (frame.case !== 'changed' || frame.value.conversation?.conversationId !== conversationId) continue
        seen.push(
          ...frame.value.events.map(({ type, author, message }) => `${type} ${(author ?? message?.author)?.kind}`),
        )
      }
    })().catch(() => {})
    await until('the inbox', () => seen.includes('ready'))
    const posts: (string | null)[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/typing') && request.method() === 'POST') posts.push(request.postData())
    })
    const lastTyping = () => seen.findLast((one) => one.startsWith('typing.'))
    const begun = performance.now()
    // Types until the widget reports the start. The widget reports at most one start per second,
    // and the visitor has just typed another message, so the first keys may cause no report.
    await until('the report of the start', async () => {
      await field(page).press('d')
      return posts.some((body) => body?.includes('started'))
    })
    await until('the visitor’s typing', () => lastTyping() === 'typing.started visitor')
    await field(page).fill('')
    await until('the report of the end', () => posts.at(-1)?.includes('stopped'))
    await until('the end', () => lastTyping() === 'typing.stopped visitor')
    // The widget reports the start of typing once. On a slow machine, the typing takes longer, and
    // the widget repeats the report every five seconds.
    const starts = posts.filter((body) => body?.includes('started')).length
    expect(starts).toBeLessThanOrEqual(1 + Math.floor((performance.now() - begun) / 5_000))

    await features.operator().messaging.setTyping({ conversationId, state: 1, agent })
    await page.getByText('Anna Keller is typing').waitFor()
    await expectAccessible(page)
    await features
      .operator()
      .messaging.sendAgentMessage({ conversationId, clientOperationId: 'typed', body: 'We do.', agent })
    await page.getByText('We do.').waitFor()
    expect(await page.getByText('Anna Keller is typing').count()).toBe(0)

    // The agent's client does not report the end of this typing, so the typing must expire.
    await features.operator().messaging.setTyping({ conversationId, state: 1, agent })
    await page.getByText('Anna Keller is typing').waitFor()
    await page.getByText('Anna Keller is typing').waitFor({ state: 'detached', timeout: 15_000 })
    expect(complaints).toEqual([])
    watching.abort()
    await watched
  })
})

describe('a message', () => {
  it('shows its delivery status, also after a reload, and the name of the assigned agent', async () => {
    const { page, conversationId, complaints } = await features.visit()
    await online(page)
    await page.context().setOffline(true)
    await field(page).fill('Is anybody there?')
    await page.keyboard.press('Enter')
    await page.getByText('Will be sent when you are back online').waitFor()
    expect(await page.getByText(/· Sent$/).count()).toBe(0)
    await page.context().setOffline(false)
    await page.getByText(/· Sent$/).waitFor()

    const { messages } = await features.operator().messaging.listMessages({ conversationId })
    const upToSequence = messages[0]!.sequence
    await features.operator().messaging.assignAgent({ conversationId, agent })
    await page.getByText('Anna Keller joined the chat').waitFor()
    await page.getByText('You’re chatting with Anna Keller').waitFor()
    await features.operator().messaging.updateMessageState({ conversationId, upToSequence, state: 'delivered' })
    await page.getByText(/· Delivered$/).waitFor()
    await features.operator().messaging.updateMessageState({ conversationId, upToSequence, state: 'read' })
    await page.getByText(/· Read$/).waitFor()
    await features.operator().messaging.closeConversation({ conversationId })
    await page.getByText('This chat was marked as done.').waitFor()
    await expectAccessible(page)

    await page.reload()
    await page.getByText(/· Read$/).waitFor()
    await page.getByText('Anna Keller joined the chat').waitFor()
    await page.getByText('This chat was marked as done.').waitFor()
    await features.operator().messaging.unassignAgent({ conversationId })
    await page.getByText('Anna Keller has left this chat').waitFor()
    await online(page)
    expect(complaints.filter((one) => !/ERR_INTERNET_DISCONNECTED|ERR_NETWORK/.test(one))).toEqual([])
  })
})

describe('the URL of the visitor’s page', () => {
  it('is reported without its query when it changes without a reload', async () => {
    const { page, sessionId } = await features.visit()
    await online(page)
    await page.evaluate(`history.pushState({}, '', '/lamps/dune?token=secret#buy'); document.title = 'Dune'`)
    await until('the page', async () => {
      const { session } = await features.operator().sessions.getSession({ sessionId })
      return (
        session?.pageContext?.url === `${features.shop().origin}/lamps/dune` && session.pageContext.title === 'Dune'
      )
    })
  })
})

describe('title and greeting', () => {
  it('are shown in the language of the visitor', async () => {
    await features.operator().workspaces.updateInstallation({
      siteKey: features.shop().siteKey,
      appearance: { translations: { de: { title: 'Laden', greeting: 'Guten Tag' }, 'de-AT': { greeting: 'Servus' } } },
    })
    await until('the translations to take effect', async () => (await features.configuration()).appearance.translations)
    const page = await (await features.browser().newContext()).newPage()
    // The page declares Austrian German as its language before the widget reads the page's
    // language.
    await page.addInitScript(`new MutationObserver(() => (document.documentElement.lang = 'de-AT')).observe(document, {
      childList: true,
    })`)
    await page.goto(features.shop().origin)
    await page.getByRole('button', { name: /^Chat öffnen/ }).click()
    await page.getByRole('heading', { name: 'Laden' }).waitFor()
    await page.getByText('Servus').waitFor()
  })
})
