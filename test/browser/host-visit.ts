import { createServer } from 'node:http'
import { expect } from 'vitest'
import { startScenarioServer } from '../../widget/test/scenario-server.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { type HostPage, hostPages, tag } from './host-pages.ts'

/** A browser with one page. */
interface HostBrowser {
  goto(url: string): Promise<unknown>
  evaluate<T>(expression: string): Promise<T>
}

const worker = `
  addEventListener('install', () => skipWaiting())
  addEventListener('activate', (event) => event.waitUntil(clients.claim()))
  addEventListener('fetch', (event) => {
    if (event.request.method !== 'GET') return
    event.respondWith(caches.open('all').then(async (cache) => {
      const known = await cache.match(event.request)
      if (known) return known
      const answer = await fetch(event.request)
      void cache.put(event.request, answer.clone()).catch(() => {})
      return answer
    }))
  })`

/** A visitor comes to a page, writes, sees what the page does, gets an answer, leaves and returns. */
export async function visitHostPage(name: string, browser: HostBrowser) {
  const gateway = await startScenarioServer({ heartbeatMs: 1_000 })
  const page = hostPages[name]!
  // Each visit has an origin of its own, because a browser keeps storage and service workers.
  const server = createServer(({ url }, response) => {
    if (url === '/worker.js') return response.setHeader('content-type', 'text/javascript').end(worker)
    const { headers = {}, type, ...shown } = url === '/framed' ? {} : page
    for (const [name, value] of Object.entries(headers))
      response.setHeader(name, value.replaceAll('ORIGIN', gateway.url))
    response.setHeader('content-type', `${type ?? 'text/html'}; charset=utf-8`)
    const source = htmlOf(shown).replaceAll('SRC', `${gateway.url}/widget.js`)
    const xml = (text: string) => text.replaceAll(' defer>', ' defer="">').replace('<html', `<html xmlns="${xhtml}"`)
    response.end(type ? xml(source) : source)
  })
  const { url, close } = await listen(server)
  try {
    await browser.goto(url)
    await visitPage()
  } finally {
    await browser.goto('about:blank')
    await gateway.close()
    await close()
  }

  async function visitPage() {
    const view = page.inside ?? 'window'
    // A stored copy of the page has a copy of the element, without a shadow root.
    const hosts = `[...${view}.document.querySelectorAll('[data-service-widget]')].filter(({ shadowRoot }) => shadowRoot)`
    const host = `${hosts}[0]`
    const ask = <T>(expression: string) => browser.evaluate<T>(expression)
    const find = (selector: string) => `${host}?.shadowRoot.querySelector(${JSON.stringify(selector)})`
    const isShown = (selector: string) => ask<boolean>(`Boolean(${find(selector)}?.getBoundingClientRect().width)`)
    const shown = (selector: string) => until(`${selector} on the page`, () => isShown(selector))
    const shows = (text: string) =>
      until(`the text ${text}`, () =>
        ask<boolean>(
          `Boolean(${find('.list')}?.checkVisibility()) && ${find('.list')}.textContent.includes(${JSON.stringify(text)})`,
        ),
      )
    const write = (text: string, enter = true) =>
      ask(`(() => {
        const field = ${find('textarea')}
        field.focus()
        field.value = ${JSON.stringify(text)}
        field.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
        if (${enter}) field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, composed: true }))
      })()`)
    const talk = () => gateway.conversation('pk_friendly')
    const received = (text: string) =>
      until(`the message ${text}`, () => talk().messages.some(({ body }) => body === text))

    // Mount
    await shown('.launcher')
    expect(await ask(`${hosts}.length`)).toBe(1)
    await ask(`void ${find('.launcher')}.click()`)
    await shown('textarea')
    await until('the session', () => gateway.sessionCount('pk_friendly'))
    await shown('.header[data-state="online"]')
    // Write
    await write('Do you ship to Graz?')
    await received('Do you ship to Graz?')
    await until('the sent message', () => ask<boolean>(`/· Sent/.test(${find('.list')}.textContent)`))
    await write('Half a sentence', false)

    if (page.act) {
      await ask(`(() => { ${page.act} })()`)
      if (page.removes) {
        // Neither the page nor the chat uses up the processor.
        await ask(`new Promise((resolve) => setTimeout(resolve, 1000))`)
        expect(await ask<number>('removals')).toBeLessThan(30)
        return
      }
    }
    // The widget is back with its state within a frame, and hears the visitor.
    await shown('.panel')
    expect(await ask(`${hosts}.length`)).toBe(1)
    expect(await ask(`${host}.matches(':popover-open')`)).toBe(true)
    await until('the draft', () => ask<boolean>(`${find('textarea')}?.value === 'Half a sentence'`))
    await write('Are you there?')
    await received('Are you there?')
    talk().agentSays('Yes, we are.')
    await shows('Yes, we are.')
    await until('the receipt', () => gateway.seen('POST /messages/receipts').some(({ body }) => body?.state === 'read'))
    expect(gateway.sessionCount('pk_friendly')).toBe(1)
    expect(talk().streams.size).toBeLessThanOrEqual(1)

    // Leave and return
    await browser.goto('about:blank')
    talk().agentSays('We closed meanwhile.')
    await browser.goto(url)
    await shown('.launcher')
    if (page.hasNoStorage) return
    await shows('Do you ship to Graz?')
    await shows('We closed meanwhile.')
    await write('Thank you')
    await received('Thank you')
    expect(gateway.sessionCount('pk_friendly')).toBe(1)
    expect(talk().messages.map(({ body }) => body)).toEqual([
      'Do you ship to Graz?',
      'Are you there?',
      'Yes, we are.',
      'We closed meanwhile.',
      'Thank you',
    ])
  }
}

const xhtml = 'http://www.w3.org/1999/xhtml'

function htmlOf({ doctype = '<!doctype html>', head = '', body = '', tags = tag, before = '' }: HostPage): string {
  const script = before && `<script>{ ${before} }</script>`
  return `${doctype}<html lang="en"><head><title>A page</title>${script}${head}${tags}</head><body><h1>A page</h1>${body}</body></html>`
}
