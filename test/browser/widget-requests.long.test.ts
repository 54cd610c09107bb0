import { describe, expect, it } from 'vitest'
import { online, useFeatures } from './widget-feature-page.ts'

// Long enough for a test to answer a request, and short enough to wait until a request expires.
const features = useFeatures({ COMMAND_LIFETIME_SECONDS: '20' })

describe('a request for a screenshot', () => {
  it('shows a countdown; if the request expires during the preview, nothing is sent', async () => {
    const { page, sessionId, complaints } = await features.visit()
    await online(page)
    const commandId = await features.requestScreenshot(sessionId)
    await page.getByText(/^Expires in 0:\d\d$/).waitFor()
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByRole('button', { name: 'Send picture' }).waitFor()
    await page.getByText('The request for a screenshot has expired. Nothing was sent.').waitFor()
    expect(await page.locator('[data-service-widget] canvas').count()).toBe(0)
    expect(await features.commandState(commandId)).toBe('expired')
    expect(complaints).toEqual([])
  })

  it('is removed when the agent cancels it', async () => {
    const { page, sessionId } = await features.visit()
    await online(page)
    const commandId = await features.requestScreenshot(sessionId)
    await page.getByRole('button', { name: 'Share screen' }).waitFor()
    await features.operator().commands.cancelCommand({ commandId })
    await page.getByText('The request for a screenshot was taken back. Nothing was sent.').waitFor()
    expect(await page.getByRole('button', { name: 'Share screen' }).count()).toBe(0)
  })

  it('offers to choose a file if the browser cannot share the screen', async () => {
    const { page, sessionId } = await features.visit()
    await online(page)
    await page.evaluate(
      `navigator.mediaDevices.getDisplayMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'))`,
    )
    const commandId = await features.requestScreenshot(sessionId)
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByText('Nothing was captured.').waitFor()
    expect(await features.commandState(commandId)).toBe('requested')
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Choose a picture' }).click()
    await (await chooser).setFiles({ name: 'a.png', mimeType: 'image/png', buffer: Buffer.from('no picture') })
    await page.getByText('Please choose a PNG, JPEG or WebP picture.').waitFor()
  })
})

describe('a request to go to another page', () => {
  it('does not change the page if the visitor declines it', async () => {
    const { page, sessionId } = await features.visit()
    await online(page)
    const { command } = await features
      .operator()
      .commands.requestNavigation({ sessionId, url: `${features.shop().origin}/?lamp=dune` })
    await page.getByRole('button', { name: 'No thanks' }).click()
    await page.getByText('You stayed on this page.').waitFor()
    expect(await features.commandState(command!.commandId)).toBe('declined')
    expect(page.url()).toBe(`${features.shop().origin}/`)
  })

  it('is counted as unread on the launcher while the chat is closed', async () => {
    const { page, sessionId } = await features.visit()
    await online(page)
    await page.keyboard.press('Escape')
    await features.operator().commands.requestNavigation({ sessionId, url: `${features.shop().origin}/?lamp=dune` })
    await page.getByRole('button', { name: 'Open chat, 1 unread message' }).click()
    await page.getByRole('heading', { name: 'Support suggests a page' }).waitFor()
  })
})
