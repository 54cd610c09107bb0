import { execFile } from 'node:child_process'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { GRANT, SITE } from './test-core.ts'
import { startTestGateway } from './test-gateway.ts'

const run = promisify(execFile)

function page(url: string, headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve, reject) =>
    get(`${url}/docs/getting-started`, { headers }, (response) => resolve(text(response))).on('error', reject),
  )
}

/** Returns the examples of the page, as a reader copies them. */
const examplesIn = (html: string) =>
  [...html.matchAll(/<code>([\s\S]*?)<\/code>/g)].map(([, code = '']) =>
    code.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&'),
  )

describe('the page “Getting started”', () => {
  test('has commands that work with the host and port of the page’s URL', async () => {
    const { url } = await startTestGateway()
    const [element, ...commands] = examplesIn(await page(url))
    expect(element).toContain(`src="${url}/widget.js"`)
    // The stream does not end, so the test reads only its beginning.
    const script = commands
      .join('\n')
      .replace('SITE=http://localhost:8081', `SITE=${SITE}`)
      .replace(/curl -sfN/, 'timeout 2 curl -sfN')
    const { stdout } = await run('bash', ['-ec', `${script} || [ $? = 124 ]\necho "grant $GRANT"`])
    expect(stdout).toContain('"publicSiteKey":"pk_demo"')
    expect(stdout).toContain('"clientOperationId":"getting-started-1"')
    expect(stdout).toContain(': open')
    expect(stdout).toContain(`grant ${GRANT}`)
  })

  test('escapes the host that a request names', async () => {
    const { url } = await startTestGateway()
    const html = await page(url, { host: 'evil"><script>alert(1)</script>' }).catch(() => '')
    expect(html).not.toContain('<script>alert')
  })

  test('is linked from the API description and has a policy without scripts', async () => {
    const { url } = await startTestGateway()
    const response = await fetch(`${url}/docs/getting-started`)
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(response.headers.get('cache-control')).toBe('no-cache')
    const document = await (await fetch(`${url}/docs/openapi.json`)).json()
    expect((document as { info: { description: string } }).info.description).toContain('(/docs/getting-started)')
  })
})
