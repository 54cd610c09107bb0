import { createServer } from 'node:http'
import { join } from 'node:path'
import { build, type Rollup } from 'vite'
import { expect, it } from 'vitest'
import { assertionOf } from '../../widget/test/assertion-of.ts'
import { startScenarioServer } from '../../widget/test/scenario-server.ts'
import { sharedChromium } from '../support/chromium.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')

/** A page whose component gets other properties when the page calls `draw` or `signIn`. */
const source = (apiBaseUrl: string) => `
  import { createElement, render } from 'react'
  import { ServiceWidget } from '/widget/src/react/index.ts'
  const options = { siteKey: 'pk_friendly', apiBaseUrl: '${apiBaseUrl}' }
  const draw = (more) => render(createElement(ServiceWidget, { ...options, ...more }), document.querySelector('main'))
  draw()
  window.draw = draw
  window.signIn = (assertion) => draw({ identityProvider: async () => assertion })`

/** Builds the page with Preact in place of React, whose hooks are the same. */
async function pageScript(apiBaseUrl: string): Promise<string> {
  const result = await build({
    root,
    configFile: false,
    logLevel: 'error',
    resolve: { alias: { react: 'preact/compat' } },
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === 'page' ? '\0page' : undefined),
        load: (id) => (id === '\0page' ? source(apiBaseUrl) : undefined),
      },
    ],
    build: { write: false, rolldownOptions: { input: 'page', output: { codeSplitting: false } } },
  })
  const { output } = result as Rollup.RollupOutput
  return output[0].code
}

it('the React component passes on an identityProvider, a theme and a language that come after the first render', async () => {
  const gateway = await startScenarioServer({ heartbeatMs: 1_000 })
  const script = await pageScript(gateway.url)
  const body = `<!doctype html><meta charset="utf-8"><main></main><script type="module">${script.replaceAll('</', '<\\/')}</script>`
  const host = createServer((_, response) => response.setHeader('content-type', 'text/html').end(body))
  const { url } = await listen(host)
  const page = await (await sharedChromium()).newPage()
  try {
    await page.goto(url)
    const launcher = page.getByRole('button', { name: 'Open chat' })
    await launcher.waitFor()
    await page.evaluate(
      (assertion) => (globalThis as never as { signIn(it: string): void }).signIn(assertion),
      assertionOf('ada'),
    )
    await launcher.click()
    await until('the identification', () => gateway.seen('POST /sessions/identify').length === 1)
    expect(gateway.seen('POST /sessions/identify')[0]!.body).toEqual({ assertion: assertionOf('ada') })
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Close chat' }).waitFor()
    const colors = () =>
      dialog.evaluate((element) => element.ownerDocument.defaultView!.getComputedStyle(element).colorScheme)
    expect(await colors()).not.toBe('dark')
    await page.evaluate(() => (globalThis as never as { draw(it: object): void }).draw({ theme: 'dark', locale: 'de' }))
    await dialog.getByRole('button', { name: 'Chat schließen' }).waitFor()
    await expect.poll(colors).toBe('dark')
  } finally {
    await page.close()
    await gateway.close()
  }
})
