import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { agent, expectAccessible, field, online, useFeatures } from './widget-feature-page.ts'

const features = useFeatures()

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
    // The page declares Austrian German as its language before the widget reads the page's language.
    await page.addInitScript(`new MutationObserver(() => (document.documentElement.lang = 'de-AT')).observe(document, {
      childList: true,
    })`)
    await page.goto(features.shop().origin)
    await page.getByRole('button', { name: /^Chat öffnen/ }).click()
    await page.getByRole('heading', { name: 'Laden' }).waitFor()
    await page.getByText('Servus').waitFor()
  })
})
