import { expect, it } from 'vitest'
import { itLong } from '../support/is-long.ts'
import { inWidget, open, say, useWidgetPages } from './widget-under-test.ts'

const { gateway, visit } = useWidgetPages()
const receipts = () =>
  gateway()
    .seen('POST /messages/receipts')
    .map(({ body }) => body)
const talk = () => gateway().conversation('pk_friendly')

const tag = (siteKey = 'pk_friendly') =>
  `<script src="${gateway().url}/widget.js" data-site-key="${siteKey}" defer></script>`

itLong(
  'runs one client for a site key, however often the script is evaluated, and says so once each time',
  async () => {
    const { page, complaints } = await visit({ head: tag() + tag() + tag() })
    await open(page)
    await say(page, 'Hello')
    await page.getByText(/· Sent$/).waitFor()
    expect(complaints).toEqual(Array(3).fill('Chat: pk_friendly runs already'))
    const scripts = `[...document.querySelectorAll('script[data-site-key]')]`
    expect(await page.evaluate(`new Set(${scripts}.map((each) => each.serviceWidget)).size`)).toBe(1)
    expect(await page.locator('[data-service-widget]').count()).toBe(1)
    expect(talk().streams.size).toBe(1)
    expect(gateway().sessionCount('pk_friendly')).toBe(1)
    expect(gateway().requests.filter(({ path }) => path.startsWith('/config')).length).toBeLessThanOrEqual(2)
  },
)

itLong('stays away if the page has removed the chat with its loader', async () => {
  const { page } = await visit()
  await open(page)
  await page.evaluate(`new Promise((resolve) => {
    document.querySelector('script[data-site-key]').serviceWidget.remove()
    document.body.append('More')
    setTimeout(resolve, 100)
  })`)
  expect(await page.locator('[data-service-widget]').count()).toBe(0)
})

itLong('shows the chat of another site key beside the first one', async () => {
  const { page } = await visit({ head: tag('pk_rate_limited') })
  await expect.poll(() => inWidget(page, '.launcher').count()).toBe(2)
  const left = async (at: number) => (await inWidget(page, '.launcher').nth(at).boundingBox())!
  const [one, other] = [await left(0), await left(1)]
  expect(Math.abs(one.x - other.x)).toBeGreaterThanOrEqual(one.width)
  // The page takes the first one away. It comes back to its own place.
  await page.evaluate(`document.querySelector('[data-service-widget]').remove()`)
  await expect.poll(async () => [(await left(0)).x, (await left(1)).x].sort()).toEqual([one.x, other.x].sort())
})

it('reports a message as read only when its text was in view', async () => {
  const { page } = await visit({ context: { viewport: { width: 900, height: 600 } } })
  await open(page)
  const read = () =>
    Math.max(0, ...receipts().flatMap((body) => (body?.state === 'read' ? Number(body.upToSequence) : [])))
  for (let count = 1; count <= 12; count += 1) {
    const { sequence } = talk().agentSays(`Answer ${count}`)
    await expect.poll(read, { interval: 10 }).toBe(sequence)
  }

  // The visitor reads older messages. The new answer is below.
  await page.evaluate(
    `document.querySelector('[data-service-widget]').shadowRoot.querySelector('.scroller').scrollTop = 0`,
  )
  await inWidget(page, '.jump').waitFor()
  const below = talk().agentSays('An answer below').sequence
  await expect.poll(() => receipts().at(-1)).toMatchObject({ upToSequence: below, state: 'delivered' })
  expect(read()).toBeLessThan(below)
  await inWidget(page, '.jump').click()
  await expect.poll(read).toBe(below)

  // The panel is closed. More answers arrive than it can show at once.
  await inWidget(page, '.close').click()
  const first = talk().agentSays('The first of many').sequence
  for (let count = 1; count <= 20; count += 1) talk().agentSays(`One of many ${count}`)
  const last = talk().agentSays('The last of many').sequence
  await expect.poll(() => receipts().at(-1)).toMatchObject({ upToSequence: last, state: 'delivered' })
  expect(read()).toBeLessThan(first)
  await inWidget(page, '.launcher').click()
  await expect.poll(read).toBeGreaterThanOrEqual(first)
  expect(read()).toBeLessThan(last)
  await inWidget(page, '.jump').click()
  await page.getByText('The last of many').waitFor()
})

itLong('keeps the focus, the selection and the place in the log when the page replaces its body', async () => {
  const { page } = await visit()
  await open(page)
  for (let count = 1; count <= 30; count += 1) talk().agentSays(`Answer ${count}`)
  await page.getByText('Answer 30').waitFor()
  const shadow = `document.querySelector('[data-service-widget]').shadowRoot`
  await page.evaluate(`${shadow}.querySelector('.scroller').scrollTop = 200`)
  await inWidget(page, '.jump').waitFor()
  await inWidget(page, '.field').fill('Half a sentence')
  await page.evaluate(`${shadow}.querySelector('.field').setSelectionRange(5, 6)`)
  const state = `[${shadow}.querySelector('.scroller').scrollTop, ${shadow}.activeElement?.className, ${shadow}.querySelector('.field').selectionStart]`
  const before = await page.evaluate(state)
  await page.evaluate(`new Promise((resolve) => {
    document.body.replaceWith(document.createElement('body'))
    requestAnimationFrame(resolve)
  })`)
  expect(await page.evaluate(state)).toEqual(before)
})

it('a script that neither finds its element nor a site key says so', async () => {
  const { complaints } = await visit({ head: '', attributes: 'type="module"', siteKey: '' as never })
  await expect.poll(() => complaints.join()).toContain('Chat: no data-site-key')
})
