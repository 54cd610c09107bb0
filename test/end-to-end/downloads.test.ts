import { readdir, readFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { buildConsoleIfStale, consoleDist } from '../../console/build.ts'
import { startTestGateway } from '../../gateway/test/test-gateway.ts'
import { type BuiltFile, buildWidgetIfStale, type PinnedLoader, widgetDist } from '../../widget/build.ts'
import { measureSizes } from '../../widget/sizes.ts'

/** Limit of everything that the console downloads before its first call, in bytes. */
const consoleLimit = 150 * 1024

let widget: BuiltFile[]
beforeAll(async () => {
  await Promise.all([buildWidgetIfStale(), buildConsoleIfStale()])
  widget = await latestBuild()
})

/** Reads the files of the latest build. The folder also has files of earlier builds. */
async function latestBuild(): Promise<BuiltFile[]> {
  const { path }: PinnedLoader = JSON.parse(await readFile(join(widgetDist, 'widget.json'), 'utf8'))
  const version = path.slice(1, path.lastIndexOf('/') + 1)
  const names = (await readdir(widgetDist, { recursive: true })).filter(
    // A folder with a dot belongs to a running build.
    (name) => /^[^.].*\.js$/.test(name) && (!name.startsWith('widget/') || name.startsWith(version)),
  )
  return Promise.all(names.map(async (name) => ({ name, content: await readFile(join(widgetDist, name)) })))
}

/**
 * Starts a gateway with the built files. Returns a function that downloads a file without decoding it,
 * with the `Accept-Encoding` of a browser.
 */
async function startGateway() {
  const { url } = await startTestGateway({ staticFolders: { console: consoleDist, widget: widgetDist } })
  return async (path: string, encodings = 'gzip, deflate, br, zstd') => {
    const response = await new Promise<IncomingMessage>((resolve, reject) =>
      get(url + path, { headers: { 'accept-encoding': encodings } }, resolve).on('error', reject),
    )
    const { statusCode: status, headers } = response
    return { status, encoding: headers['content-encoding'], content: await buffer(response) }
  }
}

test('the gateway sends the files of the widget unchanged and within their size limits', async () => {
  const download = await startGateway()
  const sent = new Map<string, number>()
  for (const { name, content } of widget.filter((file) => /^widget(\.js|\/.+\.js)$/.test(file.name))) {
    const brotli = await download(`/${name}`)
    expect([name, brotli.status, brotli.encoding]).toEqual([name, 200, 'br'])
    expect(brotliDecompressSync(brotli.content).equals(content)).toBe(true)
    sent.set(name, brotli.content.length)
    const zipped = await download(`/${name}`, 'gzip, deflate')
    expect(zipped.encoding).toBe('gzip')
    expect(gunzipSync(zipped.content).equals(content)).toBe(true)
  }
  const served = measureSizes(
    widget.filter(({ name }) => sent.has(name) || /^(client\.js|chunks\/)/.test(name)),
    ({ name }) => sent.get(name) ?? 0,
  ).filter(({ bytes }) => bytes > 0)
  expect(served).toHaveLength(6)
  for (const { name, bytes, limit } of served) expect(bytes, name).toBeLessThanOrEqual(limit)
})

test('the gateway sends the console within its size limit', async () => {
  const download = await startGateway()
  const page = await download('/console/')
  const html = page.encoding === 'br' ? brotliDecompressSync(page.content) : page.content
  const assets = [...String(html).matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, path]) => path!)
  expect(assets.length).toBeGreaterThan(1)
  const answers = await Promise.all(assets.map((path) => download(path)))
  expect(answers.map(({ status, encoding }) => [status, encoding])).toEqual(assets.map(() => [200, 'br']))
  const total = [page, ...answers].reduce((sum, { content }) => sum + content.length, 0)
  expect(total).toBeLessThanOrEqual(consoleLimit)
})
