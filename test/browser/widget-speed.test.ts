import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { itLong, someOf } from '../support/is-long.ts'
import { inWidget, open, useWidgetPages } from './widget-under-test.ts'

const { gateway, visit } = useWidgetPages()

it.each(
  someOf(
    [
      ['points at the launcher', (page: Page) => inWidget(page, '.launcher').hover()],
      ['focuses the launcher', (page: Page) => inWidget(page, '.launcher').focus()],
      ['touches the launcher', (page: Page) => inWidget(page, '.launcher').dispatchEvent('pointerenter')],
    ],
    1,
  ),
)('the code of the chat loads once when the visitor %s; no session begins', async (_, reach) => {
  const { page, complaints } = await visit()
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await inWidget(page, '.launcher').waitFor()
  const answered = page.waitForResponse(/chat\.js/)
  await reach(page)
  await answered
  expect(gateway().sessionCount('pk_friendly')).toBe(0)
  expect(await inWidget(page, '.launcher[aria-busy]').count()).toBe(0)
  await open(page)
  expect(asked.filter((path) => path.endsWith('/chat.js'))).toHaveLength(1)
  expect(complaints).toEqual([])
})

describe('one more message in a long conversation', () => {
  itLong(
    'changes its own row, the row before and at most the date, and the browser skips rows out of view',
    async () => {
      const { page } = await visit()
      await open(page)
      const talk = gateway().conversation('pk_friendly')
      for (let count = 1; count <= 150; count += 1) talk.agentSays(`Message ${count} of a long conversation`)
      await page.getByText('Message 150 of').waitFor()
      await page.evaluate(`
      globalThis.list = document.querySelector('[data-service-widget]').shadowRoot.querySelector('.list')
      globalThis.changed = new Set()
      new MutationObserver((records) => {
        for (const { target, addedNodes } of records)
          for (const node of [target, ...addedNodes]) changed.add(node.closest('.row')?.textContent)
      }).observe(list, { attributes: true, childList: true, subtree: true, attributeFilter: ['data-ends-group'] })`)
      talk.agentSays('The last one')
      await page.getByText('The last one').waitFor()
      const changed = (await page.evaluate('[...changed].filter(Boolean)')) as string[]
      expect(changed.every((text) => /^Today|Message 150|The last one/.test(text))).toBe(true)
      expect(changed.length).toBeGreaterThan(0)
      const drawn = await page.evaluate(`[...list.querySelectorAll('.bubble')].filter((bubble) =>
      bubble.checkVisibility({ contentVisibilityAuto: true })).length`)
      expect(drawn).toBeLessThan(100)
      expect(await inWidget(page, '.list .bubble').count()).toBe(151)
    },
  )
})
