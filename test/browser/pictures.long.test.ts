import { MongoClient } from 'mongodb'
import type { Page } from 'playwright-core'
import { beforeAll, expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { accessibilityFindings } from '../../console/test/test-console.ts'
import { openChat, openShop, type Shop, untilOnline, untilSent, write } from '../support/shop.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
let shop: Shop
let gatewayUrl: string

beforeAll(async () => {
  await buildConsoleIfStale()
  shop = await openShop(database)
  gatewayUrl = `http://localhost:${shop.network.port}`
})

/** Signs an operator in. Returns the page and its errors, including policy violations. */
async function openConsole(path = '') {
  const { page, complaints } = await shop.visit()
  await page.goto(`${gatewayUrl}/console/${path}`)
  await page.getByLabel('Or paste a token').fill(shop.stack.demo.workspaceSession)
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  return { page, complaints }
}

/** Returns a JPEG file of some megabytes with a place in its metadata, as a camera makes it. */
async function photo(page: Page, [width, height]: [number, number]): Promise<Buffer> {
  const base64 = await page.evaluate(
    `(async () => {
      const canvas = new OffscreenCanvas(${width}, ${height})
      const context = canvas.getContext('2d')
      for (let x = 0; x < ${width}; x += 8) for (let y = 0; y < ${height}; y += 8) {
        context.fillStyle = 'rgb(' + 255 * x / ${width} + ' ' + (x * y) % 99 + ' ' + 255 * y / ${height} + ')'
        context.fillRect(x, y, 8, 8)
      }
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.95 })).arrayBuffer())
      let text = ''
      for (const byte of bytes) text += String.fromCharCode(byte)
      return btoa(text)
    })()`,
  )
  const file = Buffer.from(base64 as string, 'base64')
  const metadata = Buffer.from('Exif\0\0GPS 48.2082 N 16.3738 E')
  const head = Buffer.from([0xff, 0xe1, 0, metadata.length + 2])
  return Buffer.concat([file.subarray(0, 2), head, metadata, file.subarray(2)])
}

async function choose(page: Page, button: string, name: string, buffer: Buffer) {
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: button, exact: true }).press('Enter')
  await (await chooser).setFiles({ name, mimeType: 'image/jpeg', buffer })
}

async function storedPictures() {
  const client = new MongoClient(database.uri)
  const found = await client.db(database.name).collection('pictures').find().sort({ storedAt: 1 }).toArray()
  await client.close()
  return found.map(({ owner, contentType, content }) => ({ owner, contentType, content: Buffer.from(content.buffer) }))
}

/** Returns the width of a picture in the chat as soon as it is loaded. */
const widthOf = (page: Page, selector: string) =>
  until(`the picture ${selector}`, () =>
    page
      .locator(`[data-service-widget] ${selector}`)
      .last()
      .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth)
      .catch(() => undefined),
  )

it('a photo becomes a small face without its place, which visitors see beside answers', async () => {
  const visitor = await shop.visit()
  await openChat(visitor.page)
  await untilOnline(visitor.page)
  await write(visitor.page, 'Do you ship to Graz?')
  await untilSent(visitor.page, 'Do you ship to Graz?')

  const { page, complaints } = await openConsole()
  const file = await photo(page, [4_000, 3_000])
  expect(file.length).toBeGreaterThan(1_000_000)
  await page.getByRole('button', { name: 'Your picture' }).press('Enter')
  await choose(page, 'Choose a file', 'notes.txt', Buffer.from('no picture'))
  await page.getByRole('alert').filter({ hasText: 'no picture that the browser can read' }).waitFor()
  expect(await accessibilityFindings(page)).toEqual([])
  await choose(page, 'Choose a file', 'ada.jpg', file)
  await page.getByRole('button', { name: 'Replace' }).waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
  expect(await accessibilityFindings(page)).toEqual([])

  const [stored] = await storedPictures()
  expect(stored!.content.length).toBeLessThan(30_000)
  expect(stored!.content.includes('GPS') || stored!.content.includes('Exif')).toBe(false)
  await page.keyboard.press('Escape')
  await page.locator('.row', { hasText: 'Do you ship to Graz?' }).click()
  const reply = page.getByRole('textbox', { name: 'Reply' })
  await reply.fill('We do.')
  await reply.press('Enter')
  expect(await widthOf(visitor.page, '.row[data-author="agent"] .avatar img')).toBe(128)

  expect(await widthOf(visitor.page, '.mark img')).toBe(128)
  await page.reload()
  await page.getByRole('button', { name: 'Your picture' }).click()
  await page.getByRole('button', { name: 'Remove' }).press('Enter')
  await page.getByRole('button', { name: 'Choose a file' }).waitFor()
  await until('the picture to be removed', async () => (await storedPictures()).length === 0)
  expect([...complaints, ...visitor.complaints]).toEqual([])
})

it('a logo is shown in the chat, whole, on white', async () => {
  const { page, complaints } = await openConsole(`installations/${shop.siteKey}/look`)
  await choose(page, 'Choose a file', 'logo.jpg', await photo(page, [900, 300]))
  await page.getByRole('button', { name: 'Replace' }).waitFor()
  expect(await accessibilityFindings(page)).toEqual([])
  const [stored] = await storedPictures()
  expect(stored).toMatchObject({ owner: `installation ${shop.siteKey}` })

  const visitor = await shop.visit()
  await openChat(visitor.page)
  expect(await widthOf(visitor.page, '.mark img')).toBe(256)
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('button', { name: 'Choose a file' }).waitFor()
  expect([...complaints, ...visitor.complaints]).toEqual([])
})
