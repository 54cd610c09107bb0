import { Code } from '@connectrpc/connect'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

const reply = (page: Page) => page.getByRole('textbox', { name: 'Reply' })
const note = (page: Page) => page.getByRole('textbox', { name: 'Note' })
/** Waits until the conversation is shown and its heading has the focus. */
const opened = (page: Page, name: string) => page.locator('.thread-title h2:focus', { hasText: name }).waitFor()
const rowNames = (page: Page) => page.locator('.row-name bdi').allTextContents()
const countOf = async (page: Page, queue: string) =>
  (await page.locator('.queues label', { hasText: queue }).textContent())!.replace(queue, '')

describe('the queues of the inbox', () => {
  it('show the counts of the service and list the longest waiting first', async () => {
    // The list loads one page, so these conversations are counted by the service only.
    for (let index = 0; index < 60; index += 1) {
      core.conversations.add({ conversationId: `cnv_w${index}`, sessionId: `ses_w${index}` })
      core.conversations.past(`cnv_w${index}`, 'visitor', 'Hello?', 200_000 - index, 'read')
    }
    core.conversations.add({ conversationId: 'cnv_shut', sessionId: 'ses_shut' })
    core.conversations.past('cnv_shut', 'visitor', 'Closed, not read', 300_000)
    core.conversations.close('cnv_shut')
    const page = await browser.open(core, 'conversations')
    await until('the counts', async () => (await countOf(page, 'Unanswered')) === '65')
    expect(await page.locator('.areas .count').textContent()).toBe('65 unanswered')
    expect([await countOf(page, 'Unassigned'), await countOf(page, 'All')]).toEqual(['65', '66'])
    await page.getByRole('radio', { name: /Unanswered/ }).check({ force: true })
    await until('the oldest first', async () => (await rowNames(page))[0] === 'Visitor V_W0')
    await page.locator('.row time', { hasText: 'waiting 2 days' }).first().waitFor()

    core.conversations.visitorSays('cnv_m4t1', 'And when?')
    await until('the new count', async () => (await countOf(page, 'Unanswered')) === '66')
  })

  it('begin with the unanswered if somebody waits, else with all, and never change under a hand', async () => {
    const page = await browser.open(core, 'nowhere')
    // Notes each list and each chosen queue that the page draws.
    await page.addInitScript(() => {
      const seen: string[] = []
      Object.assign(globalThis, { seen })
      const note = () => {
        const queue = document.querySelector('.queues :checked + span')?.firstChild?.textContent
        const rows = document.querySelectorAll('.rows .row').length
        const now = `${queue} ${rows}`
        if ((queue || rows > 0) && seen.at(-1) !== now) seen.push(now)
        requestAnimationFrame(note)
      }
      requestAnimationFrame(note)
    })
    const seen = () => page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen)
    await page.goto(`${core.url}/console/`)
    await page.locator('.row', { hasText: 'Maria Huber' }).waitFor()
    const waiting = await page.locator('.row').count()
    expect((await seen()).filter((each) => !/^Unanswered (0|\d+)$/.test(each))).toEqual([])
    expect(new Set(await seen()).has(`Unanswered ${waiting}`)).toBe(true)
    expect(await page.locator('.row', { hasText: 'Visitor M4T1' }).count()).toBe(0)
    // The last one is answered: the queue stays.
    for (const id of ['maria', 'x7f3', 'p2k9', 'b8w5', 'q1z6']) core.conversations.erase(`cnv_${id}`)
    await page.getByText('Nobody is waiting').waitFor()
    await page.getByRole('radio', { name: 'Unanswered', checked: true }).waitFor({ state: 'attached' })
    await page.goto(`${core.url}/console/`)
    await page.locator('.row', { hasText: 'Visitor M4T1' }).waitFor()
    expect((await seen()).filter((each) => !each.startsWith('All '))).toEqual([])
    core.conversations.visitorSays('cnv_m4t1', 'Still there?')
    await page.locator('.row', { hasText: 'Still there?' }).waitFor()
    await page.getByRole('radio', { name: 'All', checked: true }).waitFor({ state: 'attached' })
    // A name that is no queue stands for all.
    core.conversations.erase('cnv_m4t1')
    await page.goto(`${core.url}/console/conversations?queue=constructor`)
    await page.getByRole('radio', { name: 'All', checked: true }).waitFor({ state: 'attached' })
    await page.getByText('No open conversations').waitFor()
  })

  itLong.each(['live', 'during an interruption'])(
    'show no conversation that a colleague closed during an interruption, and none that was erased %s',
    async (how) => {
      const page = await browser.open(core, 'conversations?queue=unanswered')
      const maria = page.locator('.row', { hasText: 'Maria Huber' })
      const other = page.locator('.row', { hasText: 'Visitor Q1Z6' })
      await maria.waitFor()
      await other.click()
      await page.locator('.thread-title', { hasText: 'Visitor Q1Z6' }).waitFor()
      expect(new URL(page.url()).search).toBe('?queue=unanswered')
      core.conversations.close('cnv_maria')
      core.cutStreams()
      await maria.waitFor({ state: 'detached' })
      core.conversations.erase('cnv_q1z6', how === 'live')
      if (how !== 'live') core.cutStreams()
      await other.waitFor({ state: 'detached' })
      await page.getByText('This does not exist, or belongs to another workspace.').waitFor()
      expect(await page.content()).not.toContain('كم تكلفة')
    },
  )

  itLong('show who is mine, and say when nobody waits', async () => {
    const core = await browser.newCore()
    core.conversations.add({ conversationId: 'cnv_mine', sessionId: 'ses_mine' })
    core.conversations.past('cnv_mine', 'visitor', 'Hello?', 500)
    core.conversations.past('cnv_mine', 'agent', 'Good day', 400)
    core.conversations.assign('cnv_mine', 'Ada')
    const page = await browser.open(core, 'conversations')
    await page.getByRole('radio', { name: /Mine/ }).check({ force: true })
    await page.locator('.row', { hasText: 'Good day' }).waitFor()
    await page.getByRole('radio', { name: /Unanswered/ }).check({ force: true })
    await page.getByText('Nobody is waiting').waitFor()
  })
})

describe('the flow by keyboard', () => {
  it('n opens the conversation that waits longest; r, m and Ctrl+Enter answer, note and close', async () => {
    const page = await browser.open(core, 'conversations')
    await page.getByText('Maria Huber').first().waitFor()
    // The oldest unanswered conversation takes two keys.
    await page.keyboard.press('n')
    await opened(page, 'Visitor Q1Z6')
    await page.keyboard.press('r')
    await page.keyboard.type('Free from 60 euros')
    await page.keyboard.press('Control+Enter')
    await page.locator('.thread-title', { hasText: 'Closed' }).waitFor()
    expect(core.conversations.messages('cnv_q1z6').at(-1)?.body).toBe('Free from 60 euros')
    expect(core.calls('CloseConversation')).toHaveLength(1)
    await page.keyboard.press('Escape')
    await page.keyboard.press('n')
    await opened(page, 'Visitor B8W5')
    await page.keyboard.press('m')
    await page.keyboard.type('Asks each week')
    await page.keyboard.press('Enter')
    await page.locator('.message.note', { hasText: 'Asks each week' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('c')
    await page.locator('.thread-title', { hasText: 'Closed' }).waitFor()
  })

  itLong('acts on the conversation that is shown, from the moment at which it is shown', async () => {
    const page = await browser.open(core, 'conversations/cnv_q1z6')
    await page.locator('.thread-title', { hasText: 'Visitor Q1Z6' }).waitFor()
    // The key comes right after the change of the page, before the next frame.
    await page.evaluate(`const field = document.querySelector('.composer-field')
    new MutationObserver((_, observer) => {
      if (field.isConnected) return
      observer.disconnect()
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'm', bubbles: true }))
    }).observe(document.body, { subtree: true, childList: true, characterData: true })`)
    await page.locator('a[href*="/cnv_maria"]').click()
    await note(page).waitFor()
  })

  itLong(
    'send and close, then another conversation: the first one is closed as soon as the reply is sent',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_x7f3')
      const { promise: held, resolve: answer } = Promise.withResolvers<void>()
      await page.route('**/SendAgentMessage', async (route) => {
        await held
        await route.continue()
      })
      await reply(page).fill('Goodbye')
      await page.keyboard.press('Control+Enter')
      await page.locator('a[href*="/cnv_maria"]').click()
      await page.locator('.thread-title', { hasText: 'Maria Huber' }).waitFor()
      answer()
      await until('the closing', () => core.calls('CloseConversation').length === 1)
      expect(core.calls('CloseConversation')).toMatchObject([{ conversationId: 'cnv_x7f3' }])
    },
  )

  itLong('send and close does not close a conversation whose reply the service rejects', async () => {
    const page = await browser.open(core, 'conversations/cnv_x7f3')
    core.fault('SendAgentMessage', { code: 3, info: 'ValidationFailed' })
    await reply(page).fill('Try again')
    await page.getByRole('button', { name: 'Send and close' }).click()
    await page.locator('.outgoing-failed').waitFor()
    expect(core.calls('CloseConversation')).toEqual([])
  })
})

itLong('a note and a reply are two drafts, so that no note becomes a reply', async () => {
  const page = await browser.open(core, 'conversations/cnv_maria')
  const isNote = page.getByRole('checkbox', { name: 'Internal note' })
  await reply(page).fill('Dear Maria')
  await isNote.check()
  await note(page).fill('She is rude')
  await isNote.uncheck()
  expect(await reply(page).inputValue()).toBe('Dear Maria')
  await page.reload()
  expect(await reply(page).inputValue()).toBe('Dear Maria')
  await isNote.check()
  expect(await note(page).inputValue()).toBe('She is rude')
  await page.keyboard.press('Escape')
  await note(page).press('Enter')
  await until('the note', async () => (await note(page).inputValue()) === '')
  await isNote.uncheck()
  expect(await reply(page).inputValue()).toBe('Dear Maria')
  expect(core.calls('SendAgentMessage')).toEqual([])
})

describe('the composer', () => {
  it('sends nothing with the Enter that confirms a word of an input method, as Safari reports it', async () => {
    const page = await browser.open(core, 'conversations/cnv_x7f3')
    await reply(page).fill('にほ')
    const isPrevented = await reply(page).evaluate(
      (field) =>
        !field.dispatchEvent(
          new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }),
        ),
    )
    expect([isPrevented, await reply(page).inputValue()]).toEqual([false, 'にほ'])
    expect(core.calls('SendAgentMessage')).toEqual([])
  })

  itLong(
    'puts a rejected reply that is edited back into the reply, also while the operator writes a note',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_x7f3')
      core.fault('SendAgentMessage', { code: 3, info: 'ValidationFailed' })
      await reply(page).fill('For the visitor')
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Edit message' }).waitFor()
      await page.getByRole('checkbox', { name: 'Internal note' }).check()
      await note(page).fill('For us')
      await page.getByRole('button', { name: 'Edit message' }).click()
      await until('the reply', async () => (await reply(page).inputValue()) === 'For the visitor')
      await page.getByRole('checkbox', { name: 'Internal note' }).check()
      expect(await note(page).inputValue()).toBe('For us')
    },
  )
})

itLong('the mark of new messages appears for a message, and not because the visitor types', async () => {
  for (let index = 0; index < 60; index += 1)
    core.conversations.past('cnv_maria', 'visitor', `Line ${index}`, 50, 'read')
  const page = await browser.open(core, 'conversations/cnv_maria')
  await page.getByText('Line 59').last().waitFor()
  const mark = page.getByRole('button', { name: 'New messages' })
  // The log knows its position only after the event.
  await page.locator('.log').evaluate((log) => {
    const scrolled = new Promise((resolve) => log.addEventListener('scroll', resolve, { once: true }))
    log.scrollTo(0, 200)
    return scrolled.then(() => undefined)
  })
  core.conversations.visitorTypes('cnv_maria', true)
  await page.locator('.typing-line').waitFor({ state: 'attached' })
  expect(await mark.count()).toBe(0)
  core.conversations.visitorSays('cnv_maria', 'One more')
  await mark.waitFor()
})

describe('a row with a long name of a verified visitor', () => {
  itLong('scrolls nothing sideways and shows the mark, in the list and in the conversation', async () => {
    const displayName = 'Wolfeschlegelsteinhausenbergerdorff '.repeat(4).trim()
    core.conversations.add({
      conversationId: 'cnv_long',
      sessionId: 'ses_maria',
      visitor: { identityState: 'verified', displayName },
    })
    core.conversations.past('cnv_long', 'visitor', 'Hello?', 5)
    const page = await browser.open(core, 'conversations/cnv_long')
    await page.locator('.thread-title .verified-mark').waitFor()
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 800 })
      for (const path of width > 720 ? ['conversations/cnv_long'] : ['conversations/cnv_long', 'conversations']) {
        await page.goto(`${core.url}/console/${path}`)
        const mark = page.locator('.verified-mark').filter({ visible: true }).first()
        await mark.waitFor()
        const found = await mark.evaluate((shown) => {
          const { right } = shown.getBoundingClientRect()
          const inside = (shown.closest('.row, .thread-title') as HTMLElement).getBoundingClientRect().right
          const wide = [...document.querySelectorAll('.conversations, .log, .details, html')]
          return { isCut: right > inside, wide: wide.filter((each) => each.scrollWidth > each.clientWidth).length }
        })
        expect(found, `${path} at ${width}`).toEqual({ isCut: false, wide: 0 })
      }
    }
  })
})

describe('answering', () => {
  it('assigns the conversation when the answer arrives, if the service was not reached before', async () => {
    core.fault('AssignAgent', { code: Code.Unavailable })
    const page = await browser.open(core, 'conversations/cnv_q1z6')
    await reply(page).fill('Free from 60 euros')
    await page.keyboard.press('Enter')
    await page.locator('.happened', { hasText: 'Assigned to you' }).waitFor()
    expect(core.calls('AssignAgent')).toHaveLength(2)
  })

  itLong(
    'keeps the focus on Escape after the conversation has left the list, and assigns a conversation that nobody has',
    async () => {
      const page = await browser.open(core, 'conversations?queue=unanswered')
      await page.locator('.row', { hasText: 'Visitor Q1Z6' }).click()
      await opened(page, 'Visitor Q1Z6')
      await reply(page).fill('Free from 60 euros')
      await page.keyboard.press('Enter')
      await page.locator('.row', { hasText: 'Visitor Q1Z6' }).waitFor({ state: 'detached' })
      await page.keyboard.press('Escape')
      expect(await page.evaluate(() => document.activeElement?.className)).toBe('log')
      await until('the assignment', () => core.calls('AssignAgent').length === 1)
      expect(core.calls('AssignAgent')).toMatchObject([{ conversationId: 'cnv_q1z6', operatorId: 'ada@example.com' }])
      await page.locator('.happened', { hasText: 'Assigned to you' }).waitFor()
      await reply(page).fill('And one more')
      await page.keyboard.press('Enter')
      await page.locator('.message.agent', { hasText: 'And one more' }).waitFor()
      expect(core.calls('AssignAgent')).toHaveLength(1)
    },
  )

  itLong('shows who of the colleagues writes, and not what the operator writes in another tab', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    await reply(page).waitFor()
    for (const name of ['Ada', 'Jonas']) core.conversations.types('cnv_maria', { kind: 'agent', displayName: name })
    core.conversations.types('cnv_maria', { kind: 'visitor' })
    await page.getByText('Jonas, Maria Huber are typing').waitFor()
  })
})

describe('an empty workspace', () => {
  itLong('shows three steps that tick themselves, with the script element, until the first message', async () => {
    const core = await browser.newCore()
    core.workspace.addInstallation({
      publicSiteKey: 'pk_new',
      connectionId: 'con_site',
      origins: ['https://new.example'],
    })
    core.conversations.add({ conversationId: 'cnv_first', sessionId: 'ses_first' })
    const page = await browser.open(core, 'conversations')
    const done = page.locator('.first-steps .done')
    await done.getByText('Add your website').waitFor()
    await page.getByText(/data-site-key="pk_new"/).waitFor()
    expect(await done.count()).toBe(1)
    core.conversations.setPresence('cnv_first', Presence.HERE)
    await done.getByText('Put this line on its pages.').waitFor()
    // The visitor has left, and the operator loads the console again.
    core.conversations.setPresence('cnv_first', Presence.GONE)
    await page.reload()
    await done.getByText('Put this line on its pages.').waitFor()
    core.conversations.visitorSays('cnv_first', 'Hello!')
    await page.locator('.row', { hasText: 'Hello!' }).waitFor()
    expect(await page.locator('.first-steps').count()).toBe(0)
  })
})
