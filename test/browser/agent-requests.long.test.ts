import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { expectAccessible, online, useFeatures } from './widget-feature-page.ts'

const features = useFeatures()

async function arrivedSha256(commandId: string): Promise<{ declared: string; actual: string; contentType: string }> {
  const hash = createHash('sha256')
  let header: { sha256: string; contentType: string } | undefined
  for await (const { part } of features.operator().commands.getScreenshot({ commandId })) {
    if (part.case === 'header') header = part.value
    else if (part.case === 'chunk') hash.update(part.value)
  }
  return { declared: header!.sha256, actual: hash.digest('hex'), contentType: header!.contentType }
}

describe('a request for a screenshot', () => {
  it('can be granted with a chosen file: the preview is shown, and the bytes arrive unchanged', async () => {
    const { page, sessionId, complaints } = await features.visit()
    await online(page)
    const commandId = await features.requestScreenshot(sessionId, 'To see your basket')
    await page.getByRole('heading', { name: 'Support asks for a screenshot' }).waitFor()
    await page.getByText('To see your basket', { exact: true }).waitFor()
    await expectAccessible(page)
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Choose a picture' }).click()
    const picture = await page.screenshot()
    await (await chooser).setFiles({ name: 'basket.png', mimeType: 'image/png', buffer: picture })
    await page.getByRole('img', { name: 'This is exactly what will be sent.' }).waitFor()
    expect(await features.commandState(commandId)).toBe('requested')
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Send picture' }).click()
    await page.getByText('You sent a screenshot.').waitFor()

    const sha256 = createHash('sha256').update(picture).digest('hex')
    expect(await arrivedSha256(commandId)).toEqual({ declared: sha256, actual: sha256, contentType: 'image/png' })
    expect(await page.locator('[data-service-widget] canvas').count()).toBe(0)
    expect(complaints).toEqual([])
  })

  it('can be granted by sharing the screen: one frame without the chat is sent, then sharing ends', async () => {
    const { page, sessionId, complaints } = await features.visit()
    await online(page)
    await page.evaluate(`{
      const own = navigator.mediaDevices.getDisplayMedia.bind(navigator.mediaDevices)
      navigator.mediaDevices.getDisplayMedia = async (options) => (window.shared = await own(options))
    }`)
    const commandId = await features.requestScreenshot(sessionId)
    await page.getByRole('button', { name: 'Share screen' }).click()
    await page.getByRole('button', { name: 'Send picture' }).waitFor()
    expect(await page.evaluate(`window.shared.getTracks().map((track) => track.readyState)`)).toEqual(['ended'])
    await page.getByRole('button', { name: 'Send picture' }).click()
    await page.getByText('You sent a screenshot.').waitFor()
    const { declared, actual, contentType } = await arrivedSha256(commandId)
    expect(actual).toBe(declared)
    expect(contentType).toBe('image/png')
    expect(complaints).toEqual([])
  })
})

describe('a request to go to another page', () => {
  it('can be accepted by keyboard, and the next page reports that it was opened', async () => {
    const { page, sessionId, complaints } = await features.visit()
    await online(page)
    const url = `${features.shop().origin}/?lamp=dune`
    const { command } = await features.operator().commands.requestNavigation({ sessionId, url, label: 'The lamp Dune' })
    await page.getByRole('heading', { name: 'Support suggests a page' }).waitFor()
    await page.getByText('The lamp Dune', { exact: true }).waitFor()
    expect(await page.locator('[data-service-widget] .target-url').textContent()).toContain(
      new URL(features.shop().origin).host,
    )
    await expectAccessible(page)
    expect(await features.commandState(command!.commandId)).toBe('requested')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    expect(await page.getByRole('button', { name: 'Go to page' }).evaluate((one) => one.matches(':focus'))).toBe(true)
    await page.keyboard.press('Enter')
    await page.waitForURL(url)
    await until('the arrival', async () => (await features.commandState(command!.commandId)) === 'completed')
    const { command: after } = await features.operator().commands.getCommand({ commandId: command!.commandId })
    expect(after?.transitions.map(({ state }) => state)).toEqual(['requested', 'accepted', 'completed'])
    await page.getByText('You went to the suggested page.').waitFor()
    expect(complaints).toEqual([])
  })
})
