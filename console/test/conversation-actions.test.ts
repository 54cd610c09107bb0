import { beforeEach, describe, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { isLong, itLong } from '../../test/support/is-long.ts'
import { pageSizes } from '../../test/support/page-checks.ts'
import { until } from '../../test/support/until.ts'
import { samplePicture } from './demo-data.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

describe('actions of operators in a conversation', () => {
  itLong(
    'a closed conversation offers to undo the closing, and a double click on Close does not reopen it',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_maria')
      await page.getByRole('button', { name: 'Close', exact: true }).dblclick()
      const undo = page.getByRole('button', { name: 'Undo' })
      await undo.waitFor()
      expect(core.calls('ReopenConversation')).toHaveLength(0)
      await undo.click()
      await undo.waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Close', exact: true }).waitFor()
      expect(core.calls('ReopenConversation')).toHaveLength(1)
    },
  )

  itLong('after a closing, the operator can ask for a rating, which the conversation and the list show', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    const ask = page.getByRole('button', { name: 'Ask for a rating' })
    await ask.waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await ask.click()
    await page.getByText('The visitor was asked for a rating', { exact: true }).waitFor()
    await ask.waitFor({ state: 'detached' })
    expect(core.calls('CloseConversation').map(({ requestRating }) => requestRating)).toEqual([false, true])
    core.conversations.rate('cnv_maria', 4, 'Quick')
    await page.getByText('The visitor rated 4 of 5: \u2068Quick\u2069').waitFor()
    await page.getByRole('radio', { name: /Closed/ }).check({ force: true })
    await page.locator('.row', { hasText: 'Rated 4/5' }).waitFor()
  })

  it('an operator can withdraw an own message, and is told what stays beyond reach; inbox and conversation show no text', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria?queue=open')
    await page.getByRole('textbox', { name: 'Reply' }).fill('A slip of the tongue')
    await page.keyboard.press('Enter')
    const own = page.locator('.message.agent', { hasText: 'A slip of the tongue' })
    await until('the message', async () => (await own.count()) === 1 && (await page.locator('.outgoing').count()) === 0)
    expect(
      await page
        .locator('.message.visitor')
        .getByRole('button', { name: 'Withdraw message', includeHidden: true })
        .count(),
    ).toBe(0)
    const tops = () =>
      page.locator('.messages > li').evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top))
    await page.locator('.message.agent', { hasText: 'from 60 euros' }).hover()
    await own.getByText('Sent').waitFor()
    const before = await tops()
    const withdraw = own.getByRole('button', { name: 'Withdraw message' })
    for (const show of [own.hover, withdraw.focus]) {
      await show.call(show === own.hover ? own : withdraw)
      expect(await withdraw.evaluate((button) => getComputedStyle(button).opacity)).toBe('1')
      expect(await tops()).toEqual(before)
    }
    // On a phone, the button stands beside the bubble, and time and state stay on their line below it.
    await page.setViewportSize(pageSizes.phone)
    const [target, text, foot] = await Promise.all(
      [withdraw, own.locator('.bubble'), own.locator('.message-foot')].map(async (each) => (await each.boundingBox())!),
    )
    expect(target).toMatchObject({ width: 44, height: 44 })
    expect(target!.x + target!.width).toBeLessThanOrEqual(text!.x)
    expect(Math.abs(target!.y + 22 - text!.y - text!.height / 2)).toBeLessThan(1)
    expect([foot!.x + foot!.width, foot!.height < 24]).toEqual([text!.x + text!.width, true])
    await page.setViewportSize(pageSizes.desktop)
    await withdraw.click()
    const dialog = page.getByRole('dialog', { name: 'Withdraw message?' })
    await dialog.getByText('beyond reach').waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Withdraw message' }).click()
    const bubble = page.locator('.message.agent .bubble.withdrawn')
    expect(await bubble.evaluate((element) => getComputedStyle(element).backgroundColor)).toBe('rgba(0, 0, 0, 0)')
    await page.locator('.row', { hasText: 'Message withdrawn' }).waitFor()
    expect(await page.getByText('A slip of the tongue').count()).toBe(0)
    const left = page.locator('.message', { has: page.locator('.bubble.withdrawn') })
    await left.hover()
    expect(await left.getByRole('button').count()).toBe(0)
  })

  itLong('an operator can assign the conversation to a colleague who is signed in, and unassign it', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    const select = page.getByRole('combobox', { name: 'Assigned to' })
    await select.selectOption({ label: 'Jonas' })
    await page
      .locator('.thread-title')
      .getByText(/Assigned to Jonas/)
      .waitFor()
    await select.selectOption({ label: 'Nobody' })
    await page.locator('.happened', { hasText: 'Jonas was unassigned' }).waitFor()
  })

  itLong(
    'an operator can request a screenshot and see the image; the page releases the image when the dialog closes',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_maria')
      await page.getByRole('button', { name: 'Take a screenshot' }).click()
      await page.getByLabel('Purpose').fill('To see the error')
      await page.keyboard.press('Enter')
      await page.locator('.command').getByText('Waiting for the visitor').waitFor()
      const { commandId } = core.visitors.commands()[0]!
      core.visitors.resolve(commandId, 'granted')
      await page.locator('.command').getByText('Allowed, waiting for the image').waitFor()
      core.visitors.upload(commandId, await samplePicture())
      await page.getByRole('button', { name: /^View image/ }).click()
      const image = page.getByRole('img', { name: /^Screenshot of the visitor/ })
      await until('the image', () => image.evaluate((element) => (element as HTMLImageElement).naturalWidth > 0))
      const src = (await image.getAttribute('src'))!
      // The content security policy allows the page to show the image, but not to fetch it.
      const isReleased = () =>
        page.evaluate(async (url) => {
          const shown = Object.assign(new Image(), { src: url })
          await shown.decode().catch(() => {})
          return shown.naturalWidth === 0
        }, src)
      expect(await isReleased()).toBe(false)
      expect(await accessibilityFindings(page)).toEqual([])
      await page.keyboard.press('Escape')
      await image.waitFor({ state: 'detached' })
      expect(await isReleased()).toBe(true)
    },
  )

  itLong('requests are shown on a line so slow that the next call begins before each answer', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
    let answer = () => {}
    await page.route('**/ListCommands', async (route) => {
      answer()
      await new Promise<void>((resolve) => {
        answer = resolve
      })
      await route.continue()
    })
    await page.getByRole('button', { name: 'Take a screenshot' }).click()
    await page.getByLabel('Purpose').fill('To see the error')
    await page.keyboard.press('Enter')
    const command = page.locator('.command').getByText('Waiting for the visitor')
    await until('the request', () => {
      core.conversations.happens('cnv_maria', 'screenshot.requested')
      return command.isVisible()
    })
    answer()
  })

  const outcomes = [
    ['completed', 'Completed'],
    ['declined', 'Declined'],
    ['expired', 'Expired'],
  ] as const
  itLong.each(isLong ? outcomes : outcomes.slice(0, 1))(
    'an operator can request a navigation and sees that it was %s',
    async (state, text) => {
      const page = await browser.open(core, 'conversations/cnv_maria')
      await page.getByRole('button', { name: 'Suggest a page' }).click()
      await page.getByLabel('URL').fill('shop.example/returns')
      await page.getByRole('button', { name: 'Send request' }).click()
      await page.getByText(/Enter a full URL/).waitFor()
      await page.getByLabel('URL').fill('https://shop.example/returns')
      await page.getByRole('button', { name: 'Send request' }).click()
      await page.locator('.command').getByText('Waiting for the visitor').waitFor()
      core.visitors.resolve(core.visitors.commands()[0]!.commandId, state)
      await page.locator('.command').getByText(text).waitFor()
    },
  )

  itLong(
    'an operator can assign and close a conversation, ban the visitor after a confirmation, and lift the ban',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_maria')
      await page.getByRole('button', { name: 'Assign to me' }).click()
      await page
        .locator('.thread-title')
        .getByText(/Assigned to you/)
        .waitFor()
      await page.getByRole('button', { name: 'Revoke session' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText(/cannot be reopened/).waitFor()
      await page.keyboard.press('Escape')
      expect(core.visitors.session('ses_maria').state).toBe('active')
      await page.getByRole('button', { name: 'Ban visitor' }).click()
      await dialog.getByText(/Every active session of this visitor ends/).waitFor()
      expect(await accessibilityFindings(page)).toEqual([])
      await dialog.getByLabel('Reason').fill('Abuse')
      await dialog.getByRole('button', { name: 'Ban visitor' }).click()
      await page
        .locator('.thread-title')
        .getByText(/· Banned/)
        .waitFor()
      expect(core.calls('BanVisitor')).toMatchObject([{ sessionId: 'ses_maria', reason: 'Abuse' }])
      // The ban is stored by the service, so it is also shown after a reload.
      await page.reload()
      await page.getByText(/cannot start a new session until you lift the ban/).waitFor()
      expect(await page.getByRole('button', { name: 'Ban visitor' }).count()).toBe(0)
      await page.getByRole('button', { name: 'Lift ban' }).click()
      await dialog.getByRole('button', { name: 'Lift ban' }).click()
      await page.getByText('Ban lifted. The visitor can').waitFor()
      await page.reload()
      await page.getByText('Ban lifted. The visitor can').waitFor()
      await page.getByRole('button', { name: 'Ban visitor' }).waitFor()
      await page.getByRole('button', { name: 'Close', exact: true }).click()
      await page.getByText(/· Closed/).waitFor()
    },
  )

  itLong(
    'a request is not offered while the visitor is offline; a session that loads is not called missing',
    async () => {
      const page = await browser.open(core, 'conversations')
      const { promise: held, resolve: answer } = Promise.withResolvers<void>()
      await page.route('**/GetSession', async (route) => {
        await held
        await route.continue()
      })
      await page.locator('a[href*="/cnv_maria"]').click()
      await page.locator('.message').first().waitFor()
      expect(await page.getByText('no session to show').count()).toBe(0)
      answer()
      const ask = page.getByRole('button', { name: 'Take a screenshot' })
      await ask.click()
      await page.getByLabel('Purpose').waitFor()
      core.conversations.setPresence('cnv_maria', Presence.GONE)
      await page.getByText('The visitor is offline').waitFor()
      expect([await ask.isDisabled(), await page.getByLabel('Purpose').count()]).toEqual([true, 0])
    },
  )
})
