import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import { itLong, someOf } from '../support/is-long.ts'
import { copyAll } from '../support/page-checks.ts'
import { open, openForm, say, useWidget, withPreChat } from './widget-under-test.ts'

const { gateway, serve, visit } = useWidget()

/** Text with the usual letters of shortcuts. */
const typed = 'is this s/m size? gjkn'

/** A page with shortcuts, as their libraries handle them. `phase` is that of its listeners. */
const shortcuts = (isCapturing: boolean, stops: boolean) => `
  window.taken = []
  for (const target of [window, document])
    for (const kind of ['keydown', 'keypress', 'keyup', 'paste'])
      target.addEventListener(kind, (event) => {
        const { tagName, isContentEditable } = event.target
        if (${stops} && (/^(INPUT|TEXTAREA|SELECT)$/.test(tagName) || isContentEditable)) return
        window.taken.push(kind)
        event.preventDefault()
        if (${stops}) event.stopImmediatePropagation()
      }, ${isCapturing})`

const root = `document.querySelector('[data-service-widget]').shadowRoot`
const fields = '.panel :is(input, textarea)'

async function typeEverywhere(page: Page) {
  const values: string[] = []
  for (const field of await page.locator(`[data-service-widget] ${fields}`).all()) {
    if (!(await field.isVisible())) continue
    await field.focus()
    await page.keyboard.type(`${typed}xy`)
    await page.keyboard.press('Backspace')
    await page.keyboard.press('Backspace')
    values.push(await field.inputValue())
  }
  return values
}

/** Opens a page whose panel shows the composer, or a form with a field of each type. */
async function pageWith(view: string, pageScript: string) {
  if (view === 'composer') {
    const page = await visit({ pageScript })
    await open(page)
    return page
  }
  const tel = { name: 'phone', label: 'Phone', type: 'tel', required: false, maxLength: 40 }
  const { preChat } = withPreChat.forms
  await serve({
    ...withPreChat,
    forms: { preChat: { fields: [...preChat.fields.slice(0, 1), tel, ...preChat.fields.slice(2)] } },
  })
  const page = await visit({ pageScript })
  await openForm(page)
  return page
}

describe.each(someOf(['composer', 'form'], 1))('a person who writes in the %s', (view) => {
  itLong.each(
    someOf(
      [
        ['prevents keys in the bubbling phase', false, false],
        ['prevents keys in the capturing phase', true, false],
        ['stops keys in the capturing phase, except in editable elements', true, true],
      ],
      1,
    ),
  )('keeps every letter on a page that %s', async (_, isCapturing, stops) => {
    const page = await pageWith(view, shortcuts(isCapturing, stops))
    const values = await typeEverywhere(page)
    expect(values).toEqual(Array.from({ length: view === 'composer' ? 1 : 3 }, () => typed))
    if (!isCapturing || stops) expect(await page.evaluate('window.taken')).toEqual([])
  })

  itLong('is not observed by listeners of the page, for every kind of event', async () => {
    const page = await pageWith(view, 'window.seen = []')
    const { kinds, seen, count } = (await page.evaluate(`(() => {
      const root = ${root}
      const kinds = new Set(['compositionstart', 'compositionupdate', 'compositionend', 'focusin', 'focusout', 'beforeinput'])
      for (const name in document.createElement('div')) if (name.startsWith('on')) kinds.add(name.slice(2))
      for (const kind of kinds)
        for (const target of [window, document, document.body])
          target.addEventListener(kind, ({ target }) => target.matches?.('[data-service-widget]') && window.seen.push(kind))
      const fields = [...root.querySelectorAll(${JSON.stringify(`${fields}, .panel button, .panel .log`)})]
      for (const field of fields)
        for (const kind of kinds) field.dispatchEvent(new Event(kind, { bubbles: true, composed: true, cancelable: true }))
      return { kinds: kinds.size, seen: [...new Set(window.seen)], count: fields.length }
    })()`)) as { kinds: number; seen: string[]; count: number }
    expect(kinds).toBeGreaterThan(90)
    expect(count).toBeGreaterThan(3)
    expect(seen).toEqual([])
  })
})

itLong('a copied conversation has no hidden words', async () => {
  const page = await visit()
  await open(page)
  await say(page, 'Do you ship to Graz?')
  await page.getByText('· Sent').waitFor()
  const talk = gateway().conversation('pk_friendly')
  talk.agentSays('See https://a.example/b。and ada@a.example')
  talk.agentSays('What else?')
  await page.locator('.bubble', { hasText: 'What else?' }).waitFor()
  const link = page.getByRole('link', { name: 'https://a.example/b (opens in a new tab)' })
  expect(await link.textContent()).toBe('https://a.example/b')
  const copied = await copyAll(page, `${root}.querySelector('.list')`)
  expect(copied.replaceAll(/\d+:\d+ [AP]M/g, '#').split('\n')).toEqual([
    'Today',
    'Do you ship to Graz?',
    '# · Sent',
    'Anna Keller',
    'See https://a.example/b。and ada@a.example',
    'What else?',
    '#',
  ])
})
