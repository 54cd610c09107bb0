import { beforeEach, describe, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { copyAll, pageSizes } from '../../test/support/page-checks.ts'
import { until } from '../../test/support/until.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

const bodies = (conversationId: string) => core.conversations.messages(conversationId).map(({ body }) => body)

itLong.each(['en', 'de'])('at 400 % zoom the head of a conversation has room for a name, in %s', async (locale) => {
  const page = await browser.open(core, 'conversations/cnv_maria', { locale, viewport: { width: 320, height: 256 } })
  const name = page.locator('.thread-title bdi')
  await name.getByText('Maria Huber').waitFor()
  expect((await name.boundingBox())!.width).toBeGreaterThan(80)
})

describe('conversations in the console', () => {
  it('an open conversation shows new messages of visitor and agent live, and marks those of the visitor as read', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    await page.getByText('And if it does not fit?').first().waitFor()
    await until(
      'the message to be read',
      () =>
        core.conversations.messages('cnv_maria').findLast(({ author }) => author?.kind === 'visitor')?.state === 'read',
    )
    const field = page.getByRole('textbox', { name: 'Reply' })
    await field.fill('Send it back')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('within 30 days.')
    await page.keyboard.press('Enter')
    await page.locator('.message.agent', { hasText: 'within 30 days.' }).getByText('Sent', { exact: false }).waitFor()
    expect(bodies('cnv_maria').at(-1)).toBe('Send it back\nwithin 30 days.')
    expect(await page.locator('.message', { hasText: 'within 30 days.' }).count()).toBe(1)
    core.conversations.visitorTypes('cnv_maria', true)
    await page.getByText('Maria Huber is typing').waitFor()
    core.conversations.visitorSays('cnv_maria', 'Thank you!')
    await page.locator('.message.visitor', { hasText: 'Thank you!' }).waitFor()
    await page.getByText('Maria Huber is typing').waitFor({ state: 'detached' })
    expect(core.calls('SetTyping').length).toBeGreaterThan(0)
  })

  itLong(
    'the list and the conversation show whether the visitor is online, away or offline, also after a reconnection',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_maria')
      const head = page.locator('.thread-head')
      const row = page.locator('.row', { hasText: 'Maria Huber' })
      const shows = async (words: string, mark: string) => {
        await head.getByText(new RegExp(`^${words} · Verified`)).waitFor()
        await row.getByText(`, ${words}`).waitFor({ state: 'attached' })
        expect(await row.locator('.avatar-mark').getAttribute('class')).toBe(mark)
      }
      page.setDefaultTimeout(5_000)
      await shows('Online', 'avatar-mark here')
      await page.locator('.row', { hasText: 'X7F3' }).getByText(', Away').waitFor({ state: 'attached' })
      core.conversations.setPresence('cnv_maria', Presence.AWAY)
      await shows('Away', 'avatar-mark away')
      core.conversations.setPresence('cnv_maria', Presence.GONE)
      await head.getByText(/^Offline · Verified/).waitFor()
      expect(await row.locator('.avatar-mark').count()).toBe(0)
      core.cutStreams()
      await until('no presence without a stream', async () => (await page.locator('.avatar-mark').count()) === 0)
      await page.locator('.row', { hasText: 'X7F3' }).getByText(', Away').waitFor({ state: 'attached' })
    },
  )

  itLong(
    'a visitor’s name and e-mail from a form are shown as not verified, with a link to the lead and back',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_p2k9')
      await page.locator('.row', { hasText: 'Li Wei' }).waitFor()
      await page
        .locator('.thread-head')
        .getByText(/Name not verified/)
        .waitFor()
      await page.locator('.thread-head').getByRole('link', { name: 'li@example.net' }).click()
      await page.getByRole('heading', { name: 'Li Wei' }).waitFor()
      expect(page.url()).toContain('/leads/lead_li')
    },
  )

  itLong(
    'the log shows assignments, closings, requests and their answers between the messages, also after a reload',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_maria')
      await page.getByRole('button', { name: 'Assign to me' }).click()
      await page.locator('.happened', { hasText: 'Assigned to you' }).waitFor()
      core.conversations.visitorSays('cnv_maria', 'Are you there?')
      await page.getByRole('button', { name: 'Close', exact: true }).click()
      await page.locator('.happened', { hasText: 'Conversation closed' }).waitFor()
      const lines = () => page.locator('.messages > li').allInnerTexts()
      const places = async () => {
        const all = await lines()
        return ['Assigned to you', 'Are you there?', 'Conversation closed'].map((text) =>
          all.findIndex((line) => line.includes(text)),
        )
      }
      const expectOrder = async () => {
        const found = await places()
        expect(found[0]).toBeGreaterThan(-1)
        expect(found).toEqual(found.toSorted((one, other) => one - other))
      }
      await expectOrder()
      await page.reload()
      await page.locator('.happened', { hasText: 'Conversation closed' }).waitFor()
      await expectOrder()
    },
  )

  itLong('a copied conversation has its messages without hidden words and the names of buttons', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    await page.getByText('And if it does not fit?').first().waitFor()
    const copied = await copyAll(page, `document.querySelector('.log')`)
    expect(copied.replaceAll(/\d\d:\d\d/g, '#').replaceAll(/^(Yester|To)day\n/gm, '')).toContain(
      [
        'Maria Huber',
        'Wonderful. Do you ship to Graz as well, for a friend?',
        '#',
        'You',
        'We do. It takes two days, and from 60 euros on it is free.',
        'See https://shop.example/shipping for all the countries.',
        '#',
        'Sent',
        'Maria Huber',
        'And if it does not fit?',
      ].join('\n'),
    )
    expect(copied).not.toMatch(/HIDDEN|Withdraw/)
  })

  itLong('an open conversation shows messages that arrived while the stream was interrupted', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    await page.getByText('Live', { exact: true }).waitFor()
    core.cutStreams()
    core.conversations.past('cnv_maria', 'visitor', 'Said while nobody listened', 0)
    await page.locator('.message', { hasText: 'Said while nobody listened' }).waitFor()
    await until('one stream', () => core.watcherCount() === 1)
    core.conversations.visitorSays('cnv_maria', 'And live again')
    await page.locator('.message', { hasText: 'And live again' }).waitFor()
  })

  it('an open conversation shows HTML in a visitor’s message as text', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    const evil =
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script> javascript:alert(1) https://ok.example/"onmouseover="x'
    core.conversations.visitorSays('cnv_maria', evil)
    await page.locator('.message', { hasText: '<script>' }).waitFor()
    expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined()
    const links = page.locator('.message', { hasText: '<script>' }).locator('a')
    expect(await links.evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href))).toEqual([
      'https://ok.example/',
    ])
    core.conversations.visitorSays('cnv_maria', 'شكرا جزيلا!')
    const bubble = page.locator('.message .bubble', { hasText: 'شكرا' })
    expect(await bubble.evaluate((element) => getComputedStyle(element).direction)).toBe('rtl')
  })
})

it.each(someOf(['en', 'de'], 1))(
  'the list shows each queue and the head of a conversation each detail, in %s',
  async (locale) => {
    const contact = { leadId: 'lead_long', name: 'Grace Hopper', email: 'grace.brewster.hopper@research.example.com' }
    core.conversations.add({ conversationId: 'cnv_long', sessionId: 'ses_long', contact })
    core.conversations.past('cnv_long', 'visitor', 'Hello?', 500)
    core.conversations.setPresence('cnv_long', Presence.HERE)
    core.conversations.assign('cnv_long', 'Christopher Featherstone')
    core.conversations.close('cnv_long')
    const page = await browser.open(core, 'conversations/cnv_long', { locale })
    await page.locator('.thread-head').getByText('Featherstone').waitFor()
    /** Returns the texts that are not visible in full: cut by an edge, or under another element. */
    const cut = (selector: string) =>
      page.locator(selector).evaluateAll((all) =>
        all.flatMap((each) => {
          const box = each.getBoundingClientRect()
          const isSeen = [box.left + 2, box.right - 2].every((x) => {
            const hit = document.elementFromPoint(x, box.top + box.height / 2)
            return hit !== null && (each.parentElement!.contains(hit) || hit.contains(each))
          })
          return isSeen && each.scrollWidth <= each.clientWidth ? [] : [each.textContent]
        }),
      )
    for (const size of [pageSizes.desktop, { width: 1024, height: 768 }, pageSizes.phone]) {
      await page.setViewportSize(size)
      const details = await cut('.thread-title .hint')
      const buttons = await page.locator('.thread-head > .line').boundingBox()
      const head = await page.locator('.thread-head').boundingBox()
      expect(buttons!.y + buttons!.height).toBeLessThanOrEqual(head!.y + head!.height)
      if (size === pageSizes.phone) await page.goto(`${core.url}/console/conversations`)
      await page.locator('.queue-count').first().waitFor()
      expect(await page.locator('.queues label').count()).toBe(5)
      expect([details, await cut('.queues label span')], `${size.width} px`).toEqual([[], []])
    }
  },
)

it('the details list the other conversations of the same visitor, and of nobody else', async () => {
  const maria = { identityState: 'verified', displayName: 'Maria Huber', externalSubject: 'customer-4711' }
  core.conversations.add({ conversationId: 'cnv_old', sessionId: 'ses_old', visitor: maria })
  core.conversations.past('cnv_old', 'visitor', 'Where is order 12?', 500_000, 'read')
  core.conversations.close('cnv_old')
  // Somebody who claims to be her, in a form and in a message.
  const contact = { leadId: 'lead_twin', name: 'Maria Huber', email: 'customer-4711' }
  core.conversations.add({ conversationId: 'cnv_twin', sessionId: 'ses_twin', contact })
  core.conversations.past('cnv_twin', 'visitor', 'I am customer-4711', 400_000, 'read')
  const page = await browser.open(core, 'conversations/cnv_maria')
  const earlier = page.locator('.details-section', { hasText: 'Earlier conversations' })
  await earlier.getByRole('link', { name: /^Where is order 12\?.*Closed$/ }).waitFor()
  expect(await earlier.getByRole('link').count()).toBe(1)
  await earlier.getByRole('link').click()
  await page.locator('.message', { hasText: 'Where is order 12?' }).waitFor()
  await earlier.getByRole('link', { name: /^And if it does not fit\?/ }).waitFor()
  await page.locator('.row', { hasText: 'The code WINTER' }).click()
  await page.locator('.message', { hasText: 'The code WINTER' }).waitFor()
  await earlier.waitFor({ state: 'detached' })
})
