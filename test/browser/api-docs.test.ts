import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SITE } from '../../gateway/test-core.ts'
import { startTestGateway } from '../../gateway/test-gateway.ts'
import { launchChromium } from '../support/chromium.ts'

let browser: Browser
beforeAll(async () => {
  browser = await launchChromium()
})
afterAll(() => browser.close())

/** The page, and all that it asked for and complained of. */
async function openDocs() {
  const { url, core } = await startTestGateway()
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } })
  const asked: string[] = []
  const complaints: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.goto(`${url}/docs`)
  await page.getByRole('heading', { name: 'Service widget API' }).waitFor()
  return { url, core, page, asked, complaints }
}

describe('the page of the API', () => {
  it('is read with no network but the gateway, under its own policy', async () => {
    const { url, page, asked, complaints } = await openDocs()
    await page.getByText('Read the public configuration').first().click()
    await page.getByRole('heading', { name: 'Read the public configuration' }).waitFor()
    await page.getByText('OriginNotAllowed').first().waitFor()
    expect(asked.filter((each) => !each.startsWith(`${url}/docs`) && !/^(data|blob):/.test(each))).toEqual([])
    expect(complaints).toEqual([])
    await page.close()
  })

  it('lets its reader try a route as a page of the origin that they name', async () => {
    const { url, page, asked, complaints } = await openDocs()
    await page.getByText('Read the public configuration').first().click()
    await page.getByRole('button', { name: /^Test Request.*get .*config/ }).click()
    const client = page.getByRole('dialog')
    await client.getByText('http://localhost:8081').click()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type(SITE)
    const answered = page.waitForResponse((response) => response.url().startsWith(`${url}/api/`))
    await client.getByRole('button', { name: /^Send get request/ }).click()
    const response = await answered
    expect([response.status(), response.request().method()]).toEqual([200, 'GET'])
    await client.getByText('service.widget.public-api').first().waitFor()
    expect(asked.every((each) => each.startsWith(url) || /^(data|blob):/.test(each))).toBe(true)
    expect(complaints).toEqual([])
    await page.close()
  })
})
