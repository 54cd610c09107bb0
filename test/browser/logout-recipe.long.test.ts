import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { sharedChromium } from '../support/chromium.ts'
import { listen } from '../support/listen.ts'

const recipe = async () => {
  const text = await readFile(join(import.meta.dirname, '../../docs/recipes.md'), 'utf8')
  return /```js\n([\s\S]*?)```/.exec(text.slice(text.indexOf('## A login on the server')))![1]!
}

/** A site with the recipe of docs/recipes.md. Returns its page, and what the page did. */
async function openSite(away: 'refused' | 'hanging' | 'blocked') {
  const script = await recipe()
  const html = `<!doctype html><script src="http://127.0.0.1:9/widget.js" data-site-key="pk_a" defer></script>
    <script src="/chat.js" defer></script><form id="logout" method="post" action="/logout"><button>Log out</button></form>`
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    const isScript = request.url === '/chat.js'
    response.writeHead(200, { 'Content-Type': isScript ? 'text/javascript' : 'text/html' })
    response.end(isScript ? script : request.url === '/logout' ? 'Bye' : html)
  })
  const { url } = await listen(server)
  const context = await (await sharedChromium()).newContext()
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(String(error)))
  if (away === 'blocked') {
    // A blocker removes the element, too.
    await page.addInitScript({
      content: `new MutationObserver(() => document.querySelector('script[data-site-key]')?.remove())
        .observe(document, { childList: true, subtree: true })`,
    })
  }
  await page.route('**/widget.js', (route) => {
    if (away === 'hanging') return
    return route.abort(away === 'blocked' ? 'blockedbyclient' : 'connectionrefused')
  })
  onTestFinished(async () => {
    await context.close()
  })
  await page.goto(url, { waitUntil: 'commit' })
  return { page, requests, errors }
}

it.each(['refused', 'hanging', 'blocked'] as const)(
  'the login recipe logs out and throws nothing while the chat is %s',
  async (away) => {
    const { page, requests, errors } = await openSite(away)
    // A deferred script that hangs holds up the recipe, so the form works without it.
    if (away !== 'hanging') await page.waitForLoadState()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByText('Bye').waitFor({ timeout: 30_000 })
    expect(requests).toContain('POST /logout')
    expect(errors).toEqual([])
  },
)
