import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { atFileEnd } from '../../test/support/clean-up.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const SHORT = 'public, max-age=300'
const FOREVER = 'public, max-age=31536000, immutable'
const page = '<!doctype html><title>Console</title>'
const chat = `export const chat = '${'x'.repeat(2000)}'`

interface Start {
  env?: Record<string, string>
  atEnd?: (step: () => Promise<void>) => void
}

async function start(files: Record<string, string | Buffer>, { env = {}, atEnd = onTestFinished }: Start = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'static-'))
  atEnd(async () => rmSync(folder, { recursive: true }))
  const write = (name: string, content: string | Buffer) => {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  for (const [name, content] of Object.entries(files)) write(name, content)
  const staticFolders = { console: join(folder, 'console'), widget: join(folder, 'widget-dist') }
  const gateway = await startTestGateway({ staticFolders, env, atEnd })
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}${path}`, { headers, redirect: 'manual' })
  /** Whether the gateway answers 304 for the ETag. Node's fetch would request a fresh copy. */
  const isCurrent = async (path: string, etag: string | null) =>
    (
      await gateway.raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-None-Match: ${etag}\r\n\r\n`)
    ).startsWith('HTTP/1.1 304 ')
  return { ...gateway, get, write, isCurrent }
}

const built = {
  secret: 'not for pages',
  'console/index.html': page,
  'console/favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'console/sw.js': '// A service worker.',
  'console/assets/main-DRGmszWJ.js': 'export {}',
  'console/assets/main-j2v_M4yS.css': 'body{}',
  'console/.env': 'hidden',
  'widget-dist/widget.js': 'void 0',
  'widget-dist/widget.json': '{}',
  'widget-dist/index.js': 'export {}',
  'widget-dist/widget/v1/7ce736f73bc5dfd4/chat.js': chat,
  'widget-dist/widget/v1/7ce736f73bc5dfd4/chat.js.br': brotliCompressSync(chat),
}

let started: ReturnType<typeof start> | undefined
/** Returns one gateway with all built files. */
const shared = () => (started ??= start(built, { atEnd: atFileEnd }))

describe('/console', () => {
  test.each(['/console/', '/console/conversations/cnv_1', '/console/leads?page=2'])(
    'serves the page at %s with no-cache',
    async (path) => {
      const { get, isCurrent } = await shared()
      const response = await get(path)
      expect([response.status, await response.text()]).toEqual([200, page])
      expect(response.headers.get('content-type')).toContain('text/html')
      expect(response.headers.get('cache-control')).toBe('no-cache')
      expect(await isCurrent(path, response.headers.get('etag'))).toBe(true)
      expect(await isCurrent(path, '"another"')).toBe(false)
    },
  )

  test('has a content security policy that allows only files and calls of this gateway', async () => {
    const { get } = await shared()
    for (const path of ['/console/', '/console/assets/main-DRGmszWJ.js']) {
      const { headers } = await get(path)
      const policy = headers.get('content-security-policy')!
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /)
      expect(policy).toContain("connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
      expect(policy).toContain(
        "worker-src 'self'; manifest-src 'self'; require-trusted-types-for 'script'; trusted-types service-worker",
      )
      expect(policy).not.toMatch(/unsafe|http|\*/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
  })

  test('lets browsers cache hashed files forever and other files for 5 min', async () => {
    const { get } = await shared()
    const caching = async (path: string) => (await get(path)).headers.get('cache-control')
    expect(await caching('/console/assets/main-DRGmszWJ.js')).toBe(FOREVER)
    expect(await caching('/console/assets/main-j2v_M4yS.css')).toBe(FOREVER)
    expect(await caching('/console/favicon.svg')).toBe(SHORT)
    expect(await caching('/console/sw.js')).toBe('no-cache')
    expect((await get('/console/assets/main-j2v_M4yS.css')).headers.get('content-type')).toContain('text/css')
  })

  test('redirects to the path with a trailing slash', async () => {
    const { get } = await shared()
    const response = await get('/console')
    expect([response.status, response.headers.get('location')]).toEqual([308, '/console/'])
  })

  test('answers 404 with an explanation before the console is built, and with the page afterwards', async () => {
    const { get, write } = await start({})
    const missing = await get('/console/')
    expect([missing.status, await missing.text()]).toEqual([404, expect.stringContaining('not built')])
    write('console/index.html', page)
    expect((await get('/console/')).status).toBe(200)
  })

  test('answers 404 if the setting CONSOLE is off', async () => {
    const { get } = await start(built, { env: { CONSOLE: 'off' } })
    for (const path of ['/console', '/console/', '/console/assets/main-DRGmszWJ.js'])
      expect((await get(path)).status).toBe(404)
    expect((await get('/widget.js')).status).toBe(200)
  })
})

describe('widget files', () => {
  test('may be loaded by every origin and have a JavaScript content type', async () => {
    const { get } = await shared()
    for (const path of ['/widget.js', '/widget/v1/7ce736f73bc5dfd4/chat.js']) {
      const { status, headers } = await get(path, { origin: 'https://any.example' })
      expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining('javascript')])
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('etag')).toMatch(/"/)
    }
  })

  test('may be cached: the loader for 5 min and hashed files forever', async () => {
    const { get, isCurrent } = await shared()
    const loader = await get('/widget.js')
    expect(loader.headers.get('cache-control')).toBe(SHORT)
    expect(await isCurrent('/widget.js', loader.headers.get('etag'))).toBe(true)
    expect((await get('/widget.json')).headers.get('cache-control')).toBe(SHORT)
    expect((await get('/widget/v1/7ce736f73bc5dfd4/chat.js')).headers.get('cache-control')).toBe(FOREVER)
  })

  test('are served compressed if a compressed file exists and the browser accepts it', async () => {
    const { raw } = await shared()
    const ask = (encodings: string) =>
      raw(
        `GET /widget/v1/7ce736f73bc5dfd4/chat.js HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: ${encodings}\r\n\r\n`,
      )
    const small = await ask('gzip, br')
    expect(small).toMatch(/^content-encoding: br\r$/im)
    expect(small).toMatch(/^vary: .*accept-encoding/im)
    expect(small).toMatch(/^cache-control: public, max-age=31536000, immutable\r$/im)
    expect(small).toMatch(/^content-type: .*javascript/im)
    const plain = await ask('identity')
    expect(plain).not.toMatch(/^content-encoding/im)
    expect(plain).toContain('x'.repeat(2000))
  })

  test('do not include other files of the built folder, whose paths get 404', async () => {
    const { get } = await shared()
    for (const path of ['/index.js', '/widget/', '/widget/v1/7ce736f73bc5dfd4/nothing.js']) {
      const response = await get(path)
      expect([path, response.status, response.headers.get('cache-control')]).toEqual([path, 404, 'no-store'])
    }
  })
})

test.each([
  '/console/../secret.txt',
  '/console/%2e%2e/secret',
  '/console/..%2fsecret',
  '/console/..%5csecret.txt',
  '/console/%252e%252e/secret.txt',
  '/console/assets/..%2f..%2f..%2fsecret.js',
  '/console//etc/passwd.js',
  '/console/.env',
  '/console/%00.js',
  '/widget/../../secret',
  '/widget/..%2f..%2fsecret',
  '/widget/%2e%2e/%2e%2e/secret',
  '/widget/%2fetc/passwd',
])('a request for %s gets no file outside the folders of built files', async (path) => {
  const { raw } = await shared()
  const answer = await raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  expect(answer).not.toMatch(/not for pages|hidden|root:/)
  // The console's page is also allowed, because it is served for paths without an extension.
  expect(answer).toMatch(/^HTTP\/1\.1 (?:404|400)|<title>Console<\/title>$/)
})

test('static files can be requested with GET and HEAD only', async () => {
  const { url } = await shared()
  for (const path of ['/console/', '/widget.js', '/widget/v1/7ce736f73bc5dfd4/chat.js']) {
    const response = await fetch(`${url}${path}`, { method: 'POST', body: 'x' })
    expect([path, response.status, response.headers.get('allow')]).toEqual([path, 405, 'GET, HEAD, OPTIONS'])
    const head = await fetch(`${url}${path}`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  }
})
