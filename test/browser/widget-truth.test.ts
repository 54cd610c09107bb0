import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { usualFields } from '../../browser/chat/usual-fields.ts'
import { itLong, someOf } from '../support/is-long.ts'
import { inWidget, open, say, useWidget } from './widget-under-test.ts'

const { gateway, serve, visit } = useWidget()

const field = (page: Page) => inWidget(page, '.field')
const talk = () => gateway().conversation('pk_friendly')
const untilSent = (page: Page) => page.getByText(/· (Sent|Delivered|Read)$/).waitFor()

/** Loads the chat as `window.chat`. */
const load = (page: Page) =>
  page.evaluate(
    `document.querySelector('script[data-site-key]').serviceWidget.load().then((chat) => { window.chat = chat })`,
  )

describe('the header', () => {
  it.each(
    someOf(
      [
        [1, 'en', 'Usually answers within 1 minute'],
        [59, 'de', 'Antwort meist innerhalb von 59 Minuten'],
        [100, 'fr', 'Répond en général en 2 heures'],
        [1_440, 'ja', '通常24 時間以内に返信します'],
        [undefined, 'en', 'We are online'],
      ],
      1,
    ),
  )('says how soon an answer usually comes: %s minutes in %s', async (usualAnswerMinutes, lang, text) => {
    await serve({ usualAnswerMinutes })
    const page = await visit({ lang })
    await open(page)
    await inWidget(page, '.status').getByText(text, { exact: true }).waitFor()
  })
})

describe('prefill', () => {
  itLong('writes into an empty field, and replaces its own text', async () => {
    const page = await visit()
    await load(page)
    await page.evaluate(`chat.prefill('About lamp 7'), chat.open()`)
    await inWidget(page, '.header[data-state="online"]').waitFor()
    expect(await field(page).inputValue()).toBe('About lamp 7')
    await page.evaluate(`chat.prefill('About lamp 8')`)
    expect(await field(page).inputValue()).toBe('About lamp 8')
    await page.reload()
    await inWidget(page, '.header[data-state="online"]').waitFor()
    expect(await field(page).inputValue()).toBe('About lamp 8')
  })

  itLong('keeps what the visitor has written', async () => {
    const page = await visit()
    await open(page)
    await load(page)
    await page.evaluate(`chat.prefill('About lamp 7')`)
    await field(page).pressSequentially(', do you have it in red?')
    await page.evaluate(`chat.prefill('About lamp 8')`)
    expect(await field(page).inputValue()).toBe('About lamp 7, do you have it in red?')
  })

  itLong('keeps what the visitor has written on the previous page, also before the session is resumed', async () => {
    const page = await visit({
      pageScriptKind: 'defer',
      pageScript: `addEventListener('service-widget:ready', ({ detail }) => detail.widget.prefill('About lamp 8'))`,
    })
    await open(page)
    await field(page).fill('Half a sentence')
    await page.reload()
    await inWidget(page, '.header[data-state="online"]').waitFor()
    await expect.poll(() => field(page).inputValue()).toBe('Half a sentence')
    await page.reload()
    await inWidget(page, '.header[data-state="online"]').waitFor()
    await expect.poll(() => field(page).inputValue()).toBe('Half a sentence')
  })
})

describe('loading the history', () => {
  /** Scrolls, and returns the place of a message on the screen. */
  const scrolledTo = (page: Page, top: number | undefined, text: string) =>
    page.evaluate<number>(`(() => {
      const root = document.querySelector('[data-service-widget]').shadowRoot
      if (${top !== undefined}) root.querySelector('.scroller').scrollTop = ${top}
      const bubble = [...root.querySelectorAll('.bubble')].find(({ textContent }) => textContent.endsWith('${text}'))
      return Math.round(bubble.getBoundingClientRect().top)
    })()`)

  it('moves no message, also while it lasts, and does not say that messages are new', async () => {
    const page = await visit()
    await open(page)
    await say(page, 'Do you ship to Graz?')
    await untilSent(page)
    for (let count = 1; count <= 120; count += 1) talk().agentSays(`Answer ${count}.`)
    await page.getByText('Answer 120.').waitFor()
    await page.reload()
    await page.getByText('Answer 120.').waitFor()
    const waiting: (() => void)[] = []
    await page.route(/\/messages\?.*beforeSequence/, async (route) => {
      await new Promise<void>((resolve) => waiting.push(resolve))
      await route.continue()
    })
    for (const [oldest, next] of [
      ['Answer 71.', 'Answer 70.'],
      ['Answer 21.', 'Answer 20.'],
    ] as const) {
      const before = await scrolledTo(page, 40, oldest)
      await inWidget(page, '.loading').waitFor()
      expect(await scrolledTo(page, undefined, oldest)).toBe(before)
      const scrolled = await scrolledTo(page, 60, oldest)
      expect(scrolled).toBe(before - 20)
      await expect.poll(() => waiting.length).toBe(1)
      waiting.pop()!()
      await inWidget(page, '.bubble').filter({ hasText: next }).waitFor({ state: 'attached' })
      await inWidget(page, '.loading').waitFor({ state: 'hidden' })
      // A browser scrolls by whole pixels.
      expect(Math.abs((await scrolledTo(page, undefined, oldest)) - scrolled)).toBeLessThanOrEqual(1)
      expect(await inWidget(page, '.jump span').isVisible()).toBe(false)
    }
    talk().agentSays('A new answer.')
    await inWidget(page, '.jump span').waitFor()
  })
})

describe('the chat says only what is true', () => {
  const consent = { required: true, policyVersion: '1', policyUrl: 'https://shop.example/privacy' }

  itLong('a message that waits for the consent is not called “Sending…”', async () => {
    await serve({ consent })
    const page = await visit()
    await open(page)
    await say(page, 'Do you ship to Graz?')
    await page.getByText('Waits for your consent').waitFor()
    expect(await page.getByText('Sending…').count()).toBe(0)
    await page.evaluate(
      `document.querySelector('script[data-site-key]').serviceWidget.load().then((chat) => chat.setLocale('de'))`,
    )
    await page.getByText('Wartet auf Ihre Einwilligung').waitFor()
    await page.getByRole('button', { name: 'Ich stimme zu' }).click()
    await page.getByText(/· Gesendet$/).waitFor()
  })

  itLong('the end of a session removes no line about what happened before', async () => {
    const page = await visit()
    await open(page)
    await say(page, 'Do you ship to Graz?')
    await untilSent(page)
    talk().emit('agent.assigned', { agent: { displayName: 'Ada' } })
    await page.getByText('Ada joined the chat').waitFor()
    gateway().endSessions('pk_friendly', 'session.expired', { status: 401, code: 'SessionExpired' })
    await inWidget(page, '.again').waitFor()
    expect(await page.getByText('Ada joined the chat').count()).toBe(1)
    expect(await page.evaluate('Object.keys(sessionStorage).filter((key) => /features/.test(key))')).toEqual([])
    await inWidget(page, '.again').click()
    await inWidget(page, '.header[data-state="online"]').waitFor()
    await page.getByText('Ada joined the chat').waitFor({ state: 'detached' })
  })

  it('a withdrawn message loses its text at once and after a reload, and stays where it was', async () => {
    const page = await visit()
    await open(page)
    await say(page, 'Do you ship to Graz?')
    await untilSent(page)
    const slip = talk().agentSays('A slip of the tongue')
    await page.getByText('A slip of the tongue').waitFor()
    talk().agentSays('We do.')
    await page.getByText('We do.').waitFor()
    talk().emit('message.redacted', { messageId: slip.messageId })
    Object.assign(slip, { body: '', redactedAt: new Date().toISOString() })
    const bubbles = inWidget(page, '.list .bubble')
    for (let load = 0; load < 2; load += 1) {
      await page.getByText('This message was withdrawn.').waitFor()
      expect((await bubbles.allTextContents()).map((text) => text.replace(/^[^:]+: /, ''))).toEqual([
        'Do you ship to Graz?',
        'This message was withdrawn.',
        'We do.',
      ])
      await page.reload()
    }
  })

  itLong('the error of a long message disappears when it is shortened', async () => {
    const page = await visit()
    await open(page)
    await say(page, 'x'.repeat(4_001))
    const error = inWidget(page, '.problem')
    await error.getByText('Please keep it under').waitFor()
    await field(page).fill('x'.repeat(4_000))
    await error.waitFor({ state: 'hidden' })
    await page.keyboard.press('Enter')
    await untilSent(page)
  })
})

it('who has written a message while nobody is there leaves only an address, and is told that the answer comes by mail', async () => {
  const fields = [
    { name: 'name', label: 'Name', type: 'text', required: false },
    { name: 'email', label: 'E-mail', type: 'email', required: true },
    { name: 'message', label: 'Message', type: 'textarea', required: true, maxLength: 12 },
  ]
  await serve({ capabilities: { offlineForm: true }, forms: { offline: { fields } }, availability: { online: false } })
  const page = await visit()
  await inWidget(page, '.launcher').click()
  await page.getByLabel('Message', { exact: true }).waitFor()
  await page.getByText('We are away and answer by mail').waitFor()
  await page.getByRole('button', { name: 'Write a message instead' }).click()
  await say(page, 'Do you ship to Graz?')
  await untilSent(page)
  await page.getByRole('button', { name: 'Leave your details instead' }).click()
  await page.getByLabel('E-mail', { exact: true }).fill('ada@example.com')
  expect(await inWidget(page, '.form-field').count()).toBe(1)
  await page.keyboard.press('Enter')
  await expect.poll(() => gateway().features.leads).toEqual([{ email: 'ada@example.com', message: 'Do you ship ' }])
})

it('the labels of the usual fields are in the language of the visitor, and other labels stay', async () => {
  const fields = [
    ...usualFields.offline,
    { name: 'order', label: 'Order number', type: 'text', required: true },
    { name: 'odd', label: 'constructor', type: 'text', required: true },
  ]
  await serve({ capabilities: { offlineForm: true }, forms: { offline: { fields } }, availability: { online: false } })
  const page = await visit()
  await inWidget(page, '.launcher').click()
  const labels = inWidget(page, '.form-field bdi')
  await expect
    .poll(() => labels.allTextContents())
    .toEqual(['Name', 'E-mail', 'Message', 'Order number', 'constructor'])
  await load(page)
  await page.evaluate(`window.chat.setLocale('es-MX')`)
  await expect
    .poll(() => labels.allTextContents())
    .toEqual(['Nombre', 'Correo electrónico', 'Mensaje', 'Order number', 'constructor'])
})
