import { Code } from '@connectrpc/connect'
import { beforeEach, describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { type FakeCore, workspaceSession } from './fake-core.ts'
import { playScene, samplePicture } from './scene.ts'
import { accessibilityFindings, consoleBrowser } from './test-console.ts'

const browser = consoleBrowser()
let core: FakeCore
beforeEach(async () => {
  core = await browser.newCore()
  await playScene(core)
})

const bodies = (conversationId: string) => core.conversations.messages(conversationId).map(({ body }) => body)

describe('a conversation', () => {
  it('is answered live, in both directions, and the visitor’s messages become read', async () => {
    const { page, complaints, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByText('And if it does not fit?').first().waitFor()
    await until(
      'it is read',
      () =>
        core.conversations.messages('cnv_maria').findLast(({ author }) => author?.kind === 'visitor')?.state === 'read',
    )
    const field = page.getByRole('textbox', { name: 'Your answer' })
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

  it('whose answer was lost says so, and sending it again leaves one message', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_x7f3')
    core.fault('SendAgentMessage', { code: Code.Unavailable })
    const field = page.getByRole('textbox', { name: 'Your answer' })
    await field.fill('I look into it')
    await page.keyboard.press('Enter')
    await page.getByText(/not certain that this was sent/).waitFor()
    // Also after the page was loaded again, by the name that it had.
    await page.reload()
    await page.getByText(/not certain that this was sent/).waitFor()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('button', { name: 'Send again' }).waitFor({ state: 'detached' })
    const [first, second] = core.calls('SendAgentMessage') as { clientOperationId: string }[]
    expect(second!.clientOperationId).toBe(first!.clientOperationId)
    expect(bodies('cnv_x7f3').filter((body) => body === 'I look into it')).toHaveLength(1)
    await close()
  })

  it('whose answer was carried out although its reply was lost shows it once, as sent', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_x7f3')
    await page.getByText('Live', { exact: true }).waitFor()
    core.fault('SendAgentMessage', { code: Code.Unavailable, afterwards: true })
    await page.getByRole('textbox', { name: 'Your answer' }).fill('Try it now')
    await page.keyboard.press('Enter')
    await page.locator('.message.agent:not(.outgoing)', { hasText: 'Try it now' }).waitFor()
    await until('no leftover', async () => (await page.locator('.outgoing').count()) === 0)
    expect(await page.locator('.message', { hasText: 'Try it now' }).count()).toBe(1)
    await close()
  })

  it('keeps what is being written when the session ends, and shows it to the same operator only', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('textbox', { name: 'Your answer' }).fill('Half a sentence')
    core.refuse(true)
    await page.getByRole('heading', { name: 'Workspace console' }).waitFor()
    await page.getByText(/does not accept your session/).waitFor()
    expect(page.url()).not.toContain('eyJ')
    core.refuse(false)
    async function signIn(sub: string) {
      await page.getByLabel('Workspace session').fill(workspaceSession({ sub }))
      await page.getByRole('button', { name: 'Sign in' }).click()
      return page.getByRole('textbox', { name: 'Your answer' })
    }
    const again = await signIn('ada@example.com')
    await until('the draft', async () => (await again.inputValue()) === 'Half a sentence')
    await page.getByRole('button', { name: 'Sign out' }).click()
    const other = await signIn('eve@example.com')
    await other.waitFor()
    expect(await other.inputValue()).toBe('')
    await close()
  })

  it('goes on after its stream was cut, with what came in between', async () => {
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

  it('shows whatever a visitor writes as text', async () => {
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

  it('asks for a screenshot and shows what becomes of it: the picture, and nothing of it afterwards', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Screenshot' }).click()
    await page.getByLabel('What for').fill('To see the error')
    await page.keyboard.press('Enter')
    await page.locator('.command').getByText('Waiting for the visitor').waitFor()
    const { commandId } = core.visitors.commands()[0]!
    core.visitors.resolve(commandId, 'granted')
    await page.locator('.command').getByText('Granted, waiting for the picture').waitFor()
    core.visitors.upload(commandId, await samplePicture())
    await page.getByRole('button', { name: /^Show the picture/ }).click()
    const image = page.getByRole('img', { name: /as they shared it/ })
    await until('the picture', () => image.evaluate((element) => (element as HTMLImageElement).naturalWidth > 0))
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
    ['expired', 'Ran out of time'],
    ['completed', 'Arrived there'],
  ])('asks the visitor to go elsewhere and tells that it was %s', async (state, text) => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Navigation' }).click()
    await page.getByLabel('Address').fill('shop.example/returns')
    await page.getByRole('button', { name: 'Ask to go there' }).click()
    await page.getByText(/Write a whole address/).waitFor()
    await page.getByLabel('Address').fill('https://shop.example/returns')
    await page.getByRole('button', { name: 'Ask to go there' }).click()
    await page.locator('.command').getByText('Waiting for the visitor').waitFor()
    core.visitors.resolve(core.visitors.commands()[0]!.commandId, state)
    await page.locator('.command').getByText(text).waitFor()
    await close()
  })

  it('is assigned, closed, its visitor banned and unbanned, its session revoked, each after saying what happens', async () => {
    const { page, close } = await browser.open(core, 'conversations/cnv_maria')
    await page.getByRole('button', { name: 'Assign to me' }).click()
    await page.getByText(/Assigned to you/).waitFor()
    await page.getByRole('button', { name: 'Revoke session' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/ends for good/).waitFor()
    await page.keyboard.press('Escape')
    expect(core.visitors.session('ses_maria').state).toBe('active')
    await page.getByRole('button', { name: 'Ban visitor' }).click()
    await dialog.getByText(/Every live session of this visitor ends/).waitFor()
    expect(await accessibilityFindings(page)).toEqual([])
    await dialog.getByLabel('Reason').fill('Abuse')
    await dialog.getByRole('button', { name: 'Ban visitor' }).click()
    await page
      .locator('.thread-title')
      .getByText(/· Banned/)
      .waitFor()
    expect(core.calls('BanVisitor')).toMatchObject([{ sessionId: 'ses_maria', reason: 'Abuse' }])
    // What stands is the service's word, so it is the same after a reload.
    await page.reload()
    await page.getByText(/get no new session until the ban is lifted/).waitFor()
    expect(await page.getByRole('button', { name: 'Ban visitor' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Lift the ban' }).click()
    await dialog.getByRole('button', { name: 'Lift the ban' }).click()
    await page.getByText('The ban is lifted. The visitor can').waitFor()
    await page.reload()
    await page.getByText('The ban is lifted. The visitor can').waitFor()
    await page.getByRole('button', { name: 'Ban visitor' }).waitFor()
    await page.getByRole('button', { name: 'Close', exact: true }).click()
    await page.getByText(/· Closed/).waitFor()
    await close()
  })
})
