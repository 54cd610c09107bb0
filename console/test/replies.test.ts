import { Code } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { workspaceSession } from './fake-core.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser(beforeEach)
const { core } = browser

const bodies = (conversationId: string) => core.conversations.messages(conversationId).map(({ body }) => body)

describe('replies and notes in the console', () => {
  it('a saved reply is inserted by its shortcut, with the keyboard only', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
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
  })

  itLong('a shortcut without a saved reply is not sent by Enter, but by the Send button', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
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
  })

  itLong('saved replies are added, changed, and deleted after a question, in their own view', async () => {
    const page = await browser.open(core, 'replies')
    await page.getByRole('textbox', { name: 'Shortcut' }).fill('bye')
    await page.getByRole('textbox', { name: 'Text' }).fill('Thank you, goodbye!')
    await page.getByRole('button', { name: 'Save reply' }).click()
    await page.getByText('Thank you, goodbye!').waitFor()
    await page.getByRole('button', { name: 'Edit /bye' }).click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('See you!')
    await page.getByRole('button', { name: 'Save reply' }).click()
    await page.locator('.saved-reply', { hasText: 'See you!' }).waitFor()
    await page.getByRole('button', { name: 'Delete /hours' }).click()
    expect(core.calls('DeleteSavedReply')).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Delete reply' }).click()
    await page.getByRole('button', { name: 'Delete /hours' }).waitFor({ state: 'detached' })
    expect(core.calls('DeleteSavedReply')).toHaveLength(1)
  })

  itLong('a note with an unknown outcome stays a note after a reload, and is added once', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
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
  })

  itLong('a reply with an unknown outcome is marked in the list and sent once, also after a reload', async () => {
    const page = await browser.open(core, 'conversations/cnv_x7f3')
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
  })

  itLong('a reply is shown once and as sent if the service stored it but the response was lost', async () => {
    const page = await browser.open(core, 'conversations/cnv_x7f3')
    await page.getByText('Live', { exact: true }).waitFor()
    core.fault('SendAgentMessage', { code: Code.Unavailable, afterwards: true })
    await page.getByRole('textbox', { name: 'Reply' }).fill('Try it now')
    await page.keyboard.press('Enter')
    await page.locator('.message.agent:not(.outgoing)', { hasText: 'Try it now' }).waitFor()
    await until('no pending reply', async () => (await page.locator('.outgoing').count()) === 0)
    expect(await page.locator('.message', { hasText: 'Try it now' }).count()).toBe(1)
  })

  itLong(
    'a note is added once and not sent as a reply, even if the response is lost, and a closed conversation can be reopened',
    async () => {
      const page = await browser.open(core, 'conversations/cnv_x7f3')
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
    },
  )

  itLong('a draft is kept when the operator’s session ends, and is shown only to the same operator', async () => {
    const page = await browser.open(core, 'conversations/cnv_maria')
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
  })
})
