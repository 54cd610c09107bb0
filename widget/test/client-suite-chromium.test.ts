import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { build, type Rolldown } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { launchChromium } from '../../test/support/chromium.ts'
import { clientSuite } from './client-suite.ts'
import { type ScenarioServer, startScenarioServer } from './scenario-server.ts'

let browser: Browser
let page: Page
let server: ScenarioServer
let site: Server

beforeAll(async () => {
  const bundle = await bundled('client-suite-page.ts')
  site = createServer((request, response) => {
    const isScript = request.url === '/suite.js'
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
    response.end(
      isScript ? bundle : '<!doctype html><title>Suite</title><script type="module" src="/suite.js"></script>',
    )
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  server = await startScenarioServer()
  browser = await launchChromium()
  page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`)
})
afterAll(async () => {
  await browser.close()
  await server.close()
  site.close()
})

/** A module with all that it imports, as one script. */
async function bundled(path: string): Promise<string> {
  const entry = fileURLToPath(new URL(path, import.meta.url))
  const built = await build({
    configFile: false,
    logLevel: 'warn',
    build: { write: false, target: 'es2022', lib: { entry, formats: ['es'], fileName: 'suite' } },
  })
  const [output] = built as Rolldown.RolldownOutput[]
  return output!.output[0].code
}

describe('the headless client, in Chromium', () => {
  it.each(Object.keys(clientSuite))('%s', async (name) => {
    const run = `window.runScenario(${JSON.stringify(name)}, ${JSON.stringify(server.url)})`
    expect(await page.evaluate(run)).toBe('done')
  })

  it('leaves nothing behind but the tab’s own storage', async () => {
    expect(await page.evaluate('[localStorage.length, document.cookie]')).toEqual([0, ''])
  })
})
