import type { Browser } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { SITE } from '../../gateway/test/test-core.ts'
import { startTestGateway } from '../../gateway/test/test-gateway.ts'
import { sharedChromium } from '../support/chromium.ts'
import { itLong } from '../support/is-long.ts'

let browser: Browser
beforeAll(async () => {
  browser = await sharedChromium()
})

/** Opens the documentation page and records its requests and errors. */
async function openDocs() {
  const { url, core } = await startTestGateway()
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 } })
  const requestedUrls: string[] = []
  const errors: string[] = []
  page.on('request', (request) => requestedUrls.push(request.url()))
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text())
  })
  await page.goto(`${url}/docs`)
  await page.getByRole('heading', { name: 'Service widget API' }).waitFor()
  return { url, core, page, requestedUrls, errors }
}

describe('the API documentation page', () => {
  it('loads from the gateway only and within its content security policy', async () => {
    const { url, page, requestedUrls, errors } = await openDocs()
    await page.getByText('Read the public configuration').first().click()
    await page.getByRole('heading', { name: 'Read the public configuration' }).waitFor()
    await page.getByText('OriginNotAllowed').first().waitFor()
    expect(await page.locator('body').innerText()).not.toMatch(/client libraries|\bruby\b|\bphp\b/i)
    expect(requestedUrls.filter((each) => !each.startsWith(`${url}/docs`) && !/^(data|blob):/.test(each))).toEqual([])
    expect(errors).toEqual([])
    await page.close()
  })

  itLong('sends a test request with the origin that the reader enters', async () => {
    const { url, page, requestedUrls, errors } = await openDocs()
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
    expect(requestedUrls.every((each) => each.startsWith(url) || /^(data|blob):/.test(each))).toBe(true)
    expect(errors).toEqual([])
    await page.close()
  })
})
