import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packWidget } from '../../dev/make/pack.ts'
import { type ScenarioServer, startScenarioServer } from '../../widget/test/scenario-server.ts'
import { sharedChromium } from '../support/chromium.ts'

let project: string
let browser: Browser
let gateway: ScenarioServer
let site: Server

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'widget-tarball-'))
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'site', private: true }))
  const tarball = await packWidget(project)
  await promisify(execFile)('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project })
  browser = await sharedChromium()
  gateway = await startScenarioServer({ heartbeatMs: 1_000 })
  site = createServer(async ({ url = '/' }, response) => {
    response.setHeader('Content-Type', `text/${url.endsWith('.js') ? 'javascript' : 'html'}; charset=utf-8`)
    response.end(await serve(url))
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))

  /** Returns a page with the script tag, or a file of the installed package. */
  async function serve(path: string): Promise<string | Buffer> {
    if (path !== '/') return readFile(join(project, 'node_modules/@service/widget/dist', path)).catch(() => '')
    return `<!doctype html><title>A shop</title><body><script src="/widget.js" data-site-key="pk_friendly"
      data-api-base-url="${gateway.url}" data-locale="de"></script>`
  }
})
afterAll(async () => {
  site.closeAllConnections()
  await new Promise((resolve) => site.close(resolve))
  await gateway.close()
  await rm(project, { recursive: true, force: true })
})

it('a site serves the script tag with all its parts from the installed npm package', async () => {
  const page = await browser.newPage()
  const failed: string[] = []
  page.on('console', (message) => message.type() === 'error' && failed.push(message.text()))
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)
  await page.getByRole('button', { name: 'Chat öffnen' }).click()
  await page.getByRole('textbox', { name: 'Ihre Nachricht' }).fill('Versenden Sie nach Graz?')
  await page.keyboard.press('Enter')
  await page.getByText(/· Gesendet$/).waitFor()
  expect(failed.filter((text) => !text.includes('favicon'))).toEqual([])
  await page.close()
})
