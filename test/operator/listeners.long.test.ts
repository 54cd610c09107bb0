import { connect } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { http2Bytes } from '../support/http2-bytes.ts'
import { until } from '../support/until.ts'
import { issueToken, productionParts, secretKey } from './service-parts.ts'

const parts = productionParts()
/** The address of each listener, and a path that it answers. */
const listeners: Record<string, URL> = {}

beforeAll(async () => {
  const secretKeys = secretKey('k1')
  const core = await parts.core()
  const CORE_URLS = core.url
  const token = (subject: string, scope: string) => issueToken(secretKeys, { subject, scopes: [scope] })
  const gateway = await parts.gateway({ CORE_URLS, CORE_TOKEN: await token('gateway', 'visitors:act') })
  const delivery = await parts.delivery({ CORE_URLS, DELIVERY_TOKEN: await token('delivery', 'deliveries:work') })
  for (const [name, { url, metricsUrl }] of Object.entries({ core, gateway, delivery })) {
    listeners[name] = new URL('/livez', url)
    listeners[`metrics of the ${name}`] = new URL(metricsUrl)
  }
  for (const url of Object.values(listeners))
    await until(`the listener ${url}`, () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
}, 180_000)

const { preface, settings, halfHead } = http2Bytes
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n`
const drip = ['x']

/** What a client sends at once, what it then repeats every 300 ms, and within how many seconds it is closed. */
const clients: Record<string, { sends(path: string): (string | Buffer)[]; repeats?: string[]; withinSeconds: number }> =
  {
    nothing: { sends: () => [], withinSeconds: 25 },
    'half a head': { sends: (path) => [get(path)], withinSeconds: 25 },
    'a header byte by byte': { sends: (path) => [`${get(path)}X: `], repeats: drip, withinSeconds: 25 },
    'headers without end': { sends: (path) => [get(path)], repeats: ['X: y\r\n'.repeat(4_000)], withinSeconds: 25 },
    'a request and half a head': { sends: (path) => [`${get(path)}\r\n`, get(path)], withinSeconds: 25 },
    'an HTTP/2 preface without settings': { sends: () => [preface], withinSeconds: 25 },
    'half an HTTP/2 preface': { sends: () => [preface.subarray(0, 20)], withinSeconds: 25 },
    'HTTP/2 settings without a call': { sends: () => [preface, settings], withinSeconds: 25 },
    'half a head over HTTP/2': { sends: (path) => [preface, settings, halfHead(1, path)], withinSeconds: 25 },
    'a body byte by byte': {
      sends: (path) => [
        `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n`,
      ],
      repeats: drip,
      withinSeconds: 75,
    },
    'a chunked body byte by byte': {
      sends: (path) => [`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;`],
      repeats: drip,
      withinSeconds: 75,
    },
  }

/** Returns after how many seconds the listener has closed the connection. */
async function secondsUntilClosed({ hostname, port, pathname }: URL, name: string): Promise<number> {
  const { sends, repeats = [], withinSeconds } = clients[name]!
  const socket = connect(Number(port), hostname)
    .on('error', () => {})
    .resume()
  onTestFinished(() => void socket.destroy())
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  for (const bytes of sends(pathname)) socket.write(bytes)
  const timer = setInterval(() => repeats.map((bytes) => socket.writable && socket.write(bytes)), 300)
  await Promise.race([new Promise((resolve) => socket.once('close', resolve)), delay(withinSeconds * 1_000)])
  clearInterval(timer)
  return socket.closed ? seconds() : Number.POSITIVE_INFINITY
}

it('every listener closes each client that sends only a part within the bound, and serves others meanwhile', async () => {
  const served = setInterval(async () => {
    for (const [name, url] of Object.entries(listeners))
      await fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
        ({ ok }) => ok || refused.push(name),
        () => refused.push(name),
      )
  }, 5_000)
  const refused: string[] = []
  onTestFinished(() => clearInterval(served))
  const late: string[] = []
  const each = Object.entries(listeners).flatMap(([listener, url]) =>
    Object.keys(clients).map(async (name) => {
      const seconds = await secondsUntilClosed(url, name)
      if (seconds > clients[name]!.withinSeconds) late.push(`${listener}: ${name} ${seconds}`)
    }),
  )
  await Promise.all(each)
  expect(late).toEqual([])
  expect(refused).toEqual([])
}, 180_000)
