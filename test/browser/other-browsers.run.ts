import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launcherTexts } from '../../widget/src/ui/languages/launcher-texts.ts'
import { builtFile } from '../../widget/test/built-files.ts'
import { startScenarioServer } from '../../widget/test/scenario-server.ts'
import { listen } from '../support/listen.ts'
import { faultsOfPage, howToInstall, type OtherBrowser, otherBrowsers } from '../support/other-browsers.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { createPageServer } from '../support/widget-page.ts'

const database = testDatabase()
let shop: Shop
beforeAll(async () => {
  shop = await openShop(database)
})

/** Starts a server that changes one byte of the files that `isTampered` selects. */
async function startTamperingServer(isTampered: (path: string) => boolean) {
  const server = createServer(async (request, response) => {
    const path = request.url!.replace(/\?.*/, '')
    if (path === '/')
      return response
        .writeHead(200, {
          'content-type': 'text/html',
          'content-security-policy': `default-src 'none'; script-src 'self'; connect-src 'self' ${gatewayUrl()}`,
        })
        .end(
          `<!doctype html><body><script src="/widget.js" data-site-key="${shop.siteKey}" data-api-base-url="${gatewayUrl()}" data-locale="fr"></script>`,
        )
    const content = await builtFile(path)
    if (!content) return response.writeHead(404).end()
    const body = Buffer.from(content)
    const tampers = isTampered(path)
    if (tampers) body[body.length - 1]! ^= 1
    response
      .writeHead(200, {
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': tampers ? 'no-store' : 'public, max-age=31536000, immutable',
      })
      .end(body)
  })
  const { url: origin, close } = await listen(server)
  await shop.operator.workspaces.updateInstallation({ siteKey: shop.siteKey, origins: [shop.origin, origin] })
  return { origin, close }
}

const email = { name: 'email', label: 'Email address', type: 'email', required: true, maxLength: 254 }
const allCards = {
  appearance: {
    title: 'Nordlicht',
    greeting: 'Hi there!',
    accentColor: '#1f5f4f',
    position: 'right',
    openingReplies: { texts: ['Where is my order?', 'I need a part for a lamp that is no longer made'] },
  },
  capabilities: { typing: true, navigation: true, screenshots: true, rating: true, preChatForm: true },
  forms: { preChat: { fields: [email] } },
  consent: { required: true, policyVersion: '1', policyUrl: 'https://shop.example/privacy' },
}

/** Returns the controls at the bottom of the panel that stand outside of it. */
const outsideOfPanel = `(() => {
  const panel = document.querySelector('[data-service-widget]').shadowRoot.querySelector('.panel').getBoundingClientRect()
  const isOutside = ({ top, bottom, left, right }) =>
    top < panel.top || bottom > panel.bottom + 1 || left < panel.left - 1 || right > panel.right + 1
  return [...document.querySelector('[data-service-widget]').shadowRoot.querySelectorAll('.field, .close')]
    .filter((each) => each.checkVisibility() && isOutside(each.getBoundingClientRect()))
    .map((each) => each.className + ' is outside of the panel')
})()`

const gatewayUrl = () => `http://localhost:${shop.network.port}`

const root = `document.querySelector('[data-service-widget]')?.shadowRoot`
const chatText = (browser: OtherBrowser) =>
  browser.evaluate<string>(
    `[...${root}?.querySelectorAll('.panel, .failure') ?? []].map((each) => each.textContent).join()`,
  )
const shows = (browser: OtherBrowser, text: string) =>
  until(`the text ${text}`, async () => (await chatText(browser)).includes(text))

async function openChat(browser: OtherBrowser) {
  await until('the launcher', () => browser.evaluate(`Boolean(${root}?.querySelector('.launcher'))`))
  await browser.evaluate(`void ${root}.querySelector('.launcher').click()`)
}

async function write(browser: OtherBrowser, text: string) {
  await until('the message field', () => browser.evaluate(`Boolean(${root}?.querySelector('textarea'))`))
  await browser.evaluate(`(() => {
    const field = ${root}.querySelector('textarea')
    field.value = ${JSON.stringify(text)}
    field.dispatchEvent(new Event('input', { bubbles: true }))
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))
  })()`)
}

const session = (browser: OtherBrowser) =>
  browser.evaluate<{ conversationId: string; sessionId: string } | null>(
    `JSON.parse(sessionStorage.getItem('service.widget.1.${shop.siteKey}'))?.session`,
  )

for (const [name, start] of Object.entries(otherBrowsers)) {
  const browser = await start()
  if (!browser) {
    test.skip(`${name} is not installed: ${howToInstall}`, () => {})
    continue
  }
  describe(name, () => {
    afterAll(() => browser.close())

    test('a visitor writes, gets an answer and continues in the same session after a reload', async () => {
      await browser.goto(shop.origin)
      await openChat(browser)
      await write(browser, 'Do you ship to Graz?')
      await shows(browser, '· Sent')
      const { conversationId, sessionId } = (await session(browser))!
      expect((await shop.messagesOf(conversationId)).map(({ body }) => body)).toEqual(['Do you ship to Graz?'])
      await shop.agentSays(conversationId, 'Yes, we do.')
      await shows(browser, 'Yes, we do.')

      await browser.goto(shop.origin)
      await shows(browser, 'Yes, we do.')
      await write(browser, 'Thank you')
      await until('the message', async () =>
        (await shop.messagesOf(conversationId)).some(({ body }) => body === 'Thank you'),
      )
      expect((await session(browser))!.sessionId).toBe(sessionId)
    })

    test('a message that is written while the network hangs is sent once', async () => {
      const { conversationId } = (await session(browser))!
      shop.network.freezeAnswers(/POST .*\/messages/)
      await write(browser, 'Are you there?')
      await shows(browser, 'Are you there?')
      shop.network.mend()
      await until('the message', async () =>
        (await shop.messagesOf(conversationId)).some(({ body }) => body === 'Are you there?'),
      )
      await shows(browser, '· Sent')
      const bodies = (await shop.messagesOf(conversationId)).map(({ body }) => body)
      expect(bodies.filter((body) => body === 'Are you there?')).toHaveLength(1)
    })

    test('the shop with an open chat has no fault at any size', async () => {
      await browser.goto(shop.origin)
      await shows(browser, 'Yes, we do.')
      expect(await faultsOfPage(browser)).toEqual([])
    })

    test.each(['en', 'ar'])('no card has a fault at any size in the language %s', async (lang) => {
      const gateway = await startScenarioServer({ heartbeatMs: 1_000, config: allCards })
      const server = await listen(createPageServer({ gateway, lang, dir: lang === 'ar' ? 'rtl' : 'ltr' }))
      const talk = () => gateway.conversation('pk_friendly')
      const visible = (selector: string) =>
        `[...(${root}?.querySelectorAll('${selector}') ?? [])].filter((each) => each.checkVisibility())`
      const click = (selector: string) => browser!.evaluate(`void ${visible(selector)}[0].click()`)
      const found: string[] = []
      async function check(card: string, selector: string) {
        await until(card, () => browser!.evaluate(`${visible(selector)}.length > 0`))
        found.push(...(await faultsOfPage(browser!, outsideOfPanel, root)).map((fault) => `${card}, ${fault}`))
      }
      await browser.goto(server.url)
      await openChat(browser)
      await check('form', '.form-view')
      await click('.form-view [type="submit"]')
      await check('form with an empty field', '[aria-invalid="true"]')
      await browser.evaluate(`(() => {
        const field = ${root}.querySelector('.form-view input')
        field.value = 'ada@example.com'
        field.dispatchEvent(new Event('input', { bubbles: true }))
      })()`)
      await click('.form-view [type="submit"]')
      await check('consent', '.consent .primary')
      await click('.consent .secondary')
      await check('declined consent', '.consent .secondary')
      await click('.consent .secondary')
      await until('the question', () => browser.evaluate(`${visible('.consent .primary')}.length > 0`))
      await click('.consent .primary')
      await check('opening replies', '.replies button')
      await write(browser, 'Do you ship to Graz?')
      await shows(browser, 'Do you ship to Graz?')
      await until('the message', () => talk()?.messages.length)
      const author = { kind: 'bot', displayName: 'Robo' } as const
      talk().emit('agent.assigned', { agent: { displayName: 'Robo', kind: 'bot' } })
      talk().agentSays('We ship to:', 'Robo', { author, quickReplies: ['Austria', 'Somewhere else'] })
      await check('quick replies', '.replies button')
      talk().agentSays('One moment', 'Robo', { author, growing: true })
      await check('growing answer', '.entry .send + .send')
      gateway.features.request(talk(), 'navigation', { url: 'https://elsewhere.example/dune', label: 'The lamp Dune' })
      await check('request to go to another page', '.request')
      await click('.request .quiet')
      await until('no request', () => browser.evaluate(`${visible('.request')}.length === 0`))
      gateway.features.request(talk(), 'screenshot', { purpose: 'To see your basket' })
      await check('request for a screenshot', '.request')
      talk().emit('conversation.closed')
      talk().emit('rating.requested')
      await check('rating', '.rating .faces button')
      await click('.rating .faces button')
      await check('rating with a comment', '.rating-more')
      gateway.endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
      await check('ended session', '.again')
      expect(found).toEqual([])
      await server.close()
      await gateway.close()
    })

    test('the browser refuses a chat file and a chunk with one changed byte', async () => {
      let tampered = /chat\.js$/
      const [, loadFailed] = launcherTexts.fr!
      const server = await startTamperingServer((path) => tampered.test(path))
      await browser.goto(`${server.origin}/`)
      await openChat(browser)
      await until('the failure', () =>
        browser.evaluate(`${root}.querySelector('.failed').textContent === '${loadFailed}'`),
      )
      expect(await browser.evaluate(`Boolean(${root}.querySelector('.panel'))`)).toBe(false)
      tampered = /fr\.js$/
      await browser.goto(`${server.origin}/?again`)
      await openChat(browser)
      // The French texts are refused, so the chat is in English.
      await shows(browser, 'We are online')
      await server.close()
    })
  })
}
