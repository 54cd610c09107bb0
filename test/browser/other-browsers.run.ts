import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launcherTexts } from '../../widget/src/ui/languages/launcher-texts.ts'
import { builtFile } from '../../widget/test/built-files.ts'
import { listen } from '../support/listen.ts'
import { faultsOfPage, howToInstall, type OtherBrowser, otherBrowsers } from '../support/other-browsers.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

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
