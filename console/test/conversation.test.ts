import { Code } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { Presence } from '#proto/messaging/v1/messaging_pb.js'
import { until } from '../../test/support/until.ts'
import { addDemoData, samplePicture } from './demo-data.ts'
import { type FakeCore, workspaceSession } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()
let core: FakeCore
beforeEach(async () => {
  core = await browser.newCore()
  await addDemoData(core)
})

const bodies = (conversationId: string) => core.conversations.messages(conversationId).map(({ body }) => body)

describe('conversations in the console', () => {
  it('an open conversation shows new messages of visitor and agent live, and marks those of the visitor as read', async () => {
    const { page, complaints, close } = await browser.open(core, 'conversations/cnv_maria')
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
    expect(complaints).toEqual([])
    await close()
  })

  it('the list and the conversation show whether the visitor is online, away or offline, also after a reconnection', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
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
    await close()
  })

  it('a visitor’s name and e-mail from a form are shown as not verified, with a link to the lead and back', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_p2k9')
    await page.locator('.row', { hasText: 'Li Wei' }).waitFor()
    await page
      .locator('.thread-head')
      .getByText(/Name not verified/)
      .waitFor()
    await page.locator('.thread-head').getByRole('link', { name: 'li@example.net' }).click()
    await page.getByRole('heading', { name: 'Li Wei' }).waitFor()
    expect(page.url()).toContain('/leads/lead_li')
    await close()
  })

  it('a closed conversation offers to undo the closing, and a double click on Close does not reopen it', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Close', exact: true }).dblclick()
    const undo = page.getByRole('button', { name: 'Undo' })
    await undo.waitFor()
    expect(core.calls('ReopenConversation')).toHaveLength(0)
    await undo.click()
    await undo.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Close', exact: true }).waitFor()
    expect(core.calls('ReopenConversation')).toHaveLength(1)
    await close()
  })

  it('an operator can assign the conversation to a colleague who is signed in, and to nobody', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    const select = page.getByRole('combobox', { name: 'Assigned to' })
    await select.selectOption({ label: 'Jonas' })
    await page
      .locator('.thread-title')
      .getByText(/Assigned to Jonas/)
      .waitFor()
    await select.selectOption({ label: 'Nobody' })
    await page.locator('.happened', { hasText: 'Jonas was unassigned' }).waitFor()
    await close()
  })

  it('a saved reply is inserted by its shortcut, with the keyboard only', async () => {
    const { page, complaints, close } = await browser.open(core, 'conversations/cnv_maria')
    const field = page.getByRole('textbox', { name: 'Reply' })
    await field.fill('/')
    await page.getByRole('button', { name: '/hours' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await until('the reply', async () => (await field.inputValue()) === 'We ship within two days.')
    expect(await accessibilityFindings(page)).toEqual([])
    await field.fill('/ho')
    await page.getByRole('button', { name: '/hours' }).waitFor()
    await field.press('Enter')
    await until('the first reply', async () => (await field.inputValue()) === 'We are open from 9 to 17.')
    expect(core.calls('SendAgentMessage')).toHaveLength(0)
    await field.press('Enter')
    await until('the message', () => bodies('cnv_maria').at(-1) === 'We are open from 9 to 17.')
    expect(complaints).toEqual([])
    await close()
  })

  it('Enter sends no shortcut without a saved reply, and the Send button sends it', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    const field = page.getByRole('textbox', { name: 'Reply' })
    await field.fill('/HOU')
    await page.getByRole('button', { name: '/hours' }).waitFor()
    await field.fill('/huors')
    await page.getByText(/No saved reply with this shortcut/).waitFor()
    await field.press('Enter')
    expect(await field.inputValue()).toBe('/huors')
    expect(core.calls('SendAgentMessage')).toHaveLength(0)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await until('the message', () => bodies('cnv_maria').at(-1) === '/huors')
    await close()
  })

  it('saved replies are added and deleted in the workspace settings', async () => {
    const { page, close } = await browser.open(core, 'workspace')
    await page.getByRole('textbox', { name: 'Shortcut' }).fill('bye')
    await page.getByRole('textbox', { name: 'Text' }).fill('Thank you, goodbye!')
    await page.getByRole('button', { name: 'Save reply' }).click()
    await page.getByText('Thank you, goodbye!').waitFor()
    await page.getByRole('button', { name: 'Delete /hours' }).click()
    await page.getByRole('button', { name: 'Delete /hours' }).waitFor({ state: 'detached' })
    expect(core.calls('DeleteSavedReply')).toHaveLength(1)
    await close()
  })

  it('a note with an unknown outcome stays a note after a reload, and is added once', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('checkbox', { name: 'Internal note' }).check()
    await page.getByRole('textbox', { name: 'Note' }).fill('Call her back')
    core.fault('AddNote', { code: Code.Unavailable, afterwards: true })
    await page.keyboard.press('Enter')
    await page.locator('.composer .notice').waitFor()
    await page.reload()
    const field = page.getByRole('textbox', { name: 'Note' })
    await field.waitFor()
    expect(await field.inputValue()).toBe('Call her back')
    await field.press('Enter')
    await until('the note', async () => (await field.inputValue()) === '')
    expect(core.conversations.notes('cnv_maria').map(({ body }) => body)).toEqual(['Call her back'])
    await close()
  })

  it('the log shows assignments, closings, requests and their answers between the messages, also after a reload', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
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
    await close()
  })

  it('a reply with an unknown outcome is marked in the list and sent once, also after a reload', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_x7f3')
    core.fault('SendAgentMessage', { code: Code.Unavailable })
    const field = page.getByRole('textbox', { name: 'Reply' })
    await field.fill('I look into it')
    await page.keyboard.press('Enter')
    await page.locator('.row', { hasText: 'Not sent' }).waitFor()
    // The waiting reply must survive a reload and keep its operation ID.
    await page.reload()
    await page.locator('.message.agent:not(.outgoing)', { hasText: 'I look into it' }).waitFor()
    await until('no pending reply', async () => (await page.locator('.outgoing').count()) === 0)
    expect(await page.locator('.row', { hasText: 'Not sent' }).count()).toBe(0)
    const ids = (core.calls('SendAgentMessage') as { clientOperationId: string }[]).map(
      (call) => call.clientOperationId,
    )
    expect(ids.length).toBeGreaterThan(1)
    expect(new Set(ids).size).toBe(1)
    expect(bodies('cnv_x7f3').filter((body) => body === 'I look into it')).toHaveLength(1)
    await close()
  })

  it('a reply is shown once and as sent if the service stored it but the response was lost', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_x7f3')
    await page.getByText('Live', { exact: true }).waitFor()
    core.fault('SendAgentMessage', { code: Code.Unavailable, afterwards: true })
    await page.getByRole('textbox', { name: 'Reply' }).fill('Try it now')
    await page.keyboard.press('Enter')
    await page.locator('.message.agent:not(.outgoing)', { hasText: 'Try it now' }).waitFor()
    await until('no pending reply', async () => (await page.locator('.outgoing').count()) === 0)
    expect(await page.locator('.message', { hasText: 'Try it now' }).count()).toBe(1)
    await close()
  })

  it('a note is shown to operators and not sent as a reply, once also after a lost response; a closed conversation can be reopened', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_x7f3')
    await page.getByText('Live', { exact: true }).waitFor()
    const before = bodies('cnv_x7f3')
    await page.getByRole('checkbox', { name: 'Internal note' }).check()
    await page.getByRole('textbox', { name: 'Note' }).fill('Asked twice already')
    core.fault('AddNote', { code: Code.Unavailable, afterwards: true })
    await page.keyboard.press('Enter')
    await page.getByText('The service cannot be reached.', { exact: false }).first().waitFor()
    await page.getByRole('textbox', { name: 'Note' }).press('Enter')
    await until('an empty field', async () => (await page.getByRole('textbox', { name: 'Note' }).inputValue()) === '')
    expect(await page.locator('.message.note', { hasText: 'Asked twice already' }).count()).toBe(1)
    expect(core.conversations.notes('cnv_x7f3')).toHaveLength(1)
    expect([bodies('cnv_x7f3'), core.calls('SetTyping'), core.calls('SendAgentMessage')]).toEqual([before, [], []])
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await page.getByRole('button', { name: 'Reopen' }).click()
    await page.getByRole('button', { name: 'Close', exact: true }).waitFor()
    await close()
  })

  it('a draft is kept when the operator’s session ends, and is shown only to the same operator', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('textbox', { name: 'Reply' }).fill('Half a sentence')
    core.rejectSessions(true)
    await page.getByRole('heading', { name: 'Sign in to the console' }).waitFor()
    await page.getByText(/Your session has ended/).waitFor()
    expect(page.url()).not.toContain('eyJ')
    core.rejectSessions(false)
    async function signIn(sub: string) {
      await page.getByLabel('Or paste a token').fill(workspaceSession({ sub }))
      await page.getByLabel('Your name').fill('Ada')
      await page.getByRole('button', { name: 'Sign in' }).click()
      return page.getByRole('textbox', { name: 'Reply' })
    }
    const again = await signIn('ada@example.com')
    await until('the draft', async () => (await again.inputValue()) === 'Half a sentence')
    await page.getByRole('button', { name: 'Sign out' }).click()
    const dialog = page.getByRole('dialog', { name: 'Sign out' })
    await dialog.getByText('One conversation has an unsent draft.').waitFor()
    await dialog.getByRole('button', { name: 'Sign out' }).click()
    const other = await signIn('eve@example.com')
    await other.waitFor()
    expect(await other.inputValue()).toBe('')
    await close()
  })

  it('an open conversation shows messages that arrived while the stream was interrupted', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByText('Live', { exact: true }).waitFor()
    core.cutStreams()
    core.conversations.past('cnv_maria', 'visitor', 'Said while nobody listened', 0)
    await page.locator('.message', { hasText: 'Said while nobody listened' }).waitFor()
    await until('one stream', () => core.watcherCount() === 1)
    core.conversations.visitorSays('cnv_maria', 'And live again')
    await page.locator('.message', { hasText: 'And live again' }).waitFor()
    await close()
  })

  it('an open conversation shows HTML in a visitor’s message as text', async () => {
    const { page, complaints, close } = await browser.open(core, 'conversations/cnv_maria')
    const evil =
      '<img src=x onerror="window.hit=1"><script>window.hit=1</script> javascript:alert(1) https://ok.example/"onmouseover="x'
    core.conversations.visitorSays('cnv_maria', evil)
    await page.locator('.message', { hasText: '<script>' }).waitFor()
    expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined()
    const links = page.locator('.message', { hasText: '<script>' }).locator('a')
    expect(await links.evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href))).toEqual([
      'https://ok.example/',
    ])
    expect(complaints).toEqual([])
    await close()
  })

  it('an operator can request a screenshot and see the image; the page releases the image when the dialog closes', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Screenshot' }).click()
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
    expect(await accessibilityFindings(page)).toEqual([])
    await page.keyboard.press('Escape')
    await image.waitFor({ state: 'detached' })
    const gone = await page.evaluate(
      (url) =>
        fetch(url).then(
          () => false,
          () => true,
        ),
      src,
    )
    expect(gone).toBe(true)
    await close()
  })

  it.each([
    ['declined', 'Declined'],
    ['expired', 'Expired'],
    ['completed', 'Completed'],
  ])('an operator can request a navigation and sees that it was %s', async (state, text) => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Navigation' }).click()
    await page.getByLabel('URL').fill('shop.example/returns')
    await page.getByRole('button', { name: 'Send request' }).click()
    await page.getByText(/Enter a full URL/).waitFor()
    await page.getByLabel('URL').fill('https://shop.example/returns')
    await page.getByRole('button', { name: 'Send request' }).click()
    await page.locator('.command').getByText('Waiting for the visitor').waitFor()
    core.visitors.resolve(core.visitors.commands()[0]!.commandId, state)
    await page.locator('.command').getByText(text).waitFor()
    await close()
  })

  it('an operator can assign and close a conversation, ban the visitor after a confirmation, and lift the ban', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
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
    await close()
  })
})
