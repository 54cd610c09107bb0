import { once } from 'node:events'
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { until } from '../test/support/until.ts'
import { connectCores } from './connect-cores.ts'
import { followCoreUrls } from './core-directory.ts'
import type { CoreNode } from './core-pool.ts'
import { parseCoreUrls } from './core-settings.ts'

/** A server on a loopback address. It answers `/livez` until a test makes it stop answering. */
async function startServer(address: string, port = 0) {
  const server: Http2Server = createServer()
  const sessions = new Set<ServerHttp2Session>()
  let silent = false
  let connections = 0
  server.on('session', (session) => {
    connections++
    sessions.add(session)
    session.on('close', () => sessions.delete(session)).on('error', () => {})
  })
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    if (silent) return
    stream.respond({ ':status': 200 })
    stream.end('{}')
  })
  server.listen(port, address)
  await once(server, 'listening')
  onTestFinished(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => sessions.size,
    silence: (value: boolean) => {
      silent = value
    },
  }
}

function connect(urls: string[], addresses: () => string[] = () => []) {
  const { cores, stop } = connectCores({ urls, lookUp: async () => addresses(), lookUpEveryMs: 20 })
  onTestFinished(stop)
  const present = new Set<CoreNode>()
  cores.follow({ added: (core) => present.add(core), removed: (core) => present.delete(core) })
  return { cores, urls: () => [...present].map(({ url }) => url).toSorted() }
}

describe('CORE_URLS', () => {
  it('accepts http and https URLs, and dns URLs only with a port', () => {
    expect(parseCoreUrls('http://a:1, https://b ,dns://core:8090,')).toEqual([
      'http://a:1',
      'https://b',
      'dns://core:8090',
    ])
    for (const wrong of ['', ',', 'a:1', 'dns://core', 'dns://u:p@core:1', 'ftp://a', 'http://u@a']) {
      expect(() => parseCoreUrls(wrong)).toThrow(/^CORE_URLS must be/)
    }
  })
})

describe('a core pool with a dns entry', () => {
  it('updates its cores when the addresses of the name change, and keeps other entries', async () => {
    let addresses = ['127.0.0.1', '::1']
    const { urls } = connect(['http://fixed:1', 'dns://core:8090'], () => addresses)
    await until('both addresses', () => urls().length === 3)
    expect(urls()).toEqual(['http://127.0.0.1:8090', 'http://[::1]:8090', 'http://fixed:1'])
    addresses = ['127.0.0.2', '::1']
    await until('the new address', () => urls().includes('http://127.0.0.2:8090'))
    expect(urls()).toEqual(['http://127.0.0.2:8090', 'http://[::1]:8090', 'http://fixed:1'])
  })

  it('keeps the cores if the lookup fails or returns no address', async () => {
    const answers = [['10.0.0.1'], undefined, [], ['10.0.0.2']]
    const seen: string[][] = []
    const stop = new AbortController()
    let asked = 0
    await followCoreUrls({
      urls: ['dns://core:1'],
      lookUp: async () => {
        const answer = answers[asked++]
        if (answer === undefined) throw new Error('SERVFAIL')
        return answer
      },
      everyMs: 1,
      onUrls(urls) {
        seen.push(urls)
        if (seen.length === answers.length) stop.abort()
      },
      signal: stop.signal,
    })
    expect(seen).toEqual([['http://10.0.0.1:1'], ['http://10.0.0.1:1'], ['http://10.0.0.1:1'], ['http://10.0.0.2:1']])
  })

  it('looks up the name periodically, not for every call', async () => {
    let asked = 0
    const { cores, urls } = connect(['dns://core:8090'], () => [`127.0.0.${1 + Math.min(asked++, 0)}`])
    await until('the address', () => urls().length === 1)
    const before = asked
    for (let call = 0; call < 1_000; call++)
      await cores.call(
        async () => {},
        () => 'answered',
      )
    expect(asked - before).toBeLessThan(100)
  })

  it('closes the connection to a removed core after its running calls have ended', async () => {
    const server = await startServer('127.0.0.1')
    let addresses = ['127.0.0.1']
    const { cores, urls } = connect([`dns://core:${server.port}`], () => addresses)
    await until('a connection', () => server.open() === 1)
    const ending = Promise.withResolvers<string>()
    const call = cores.call(
      () => ending.promise,
      () => 'answered',
    )
    addresses = ['127.0.0.9']
    await until('the core to be removed', () => !urls().includes(`http://127.0.0.1:${server.port}`))
    await delay(600)
    expect(server.open()).toBe(1)
    ending.resolve('answered')
    expect(await call).toBe('answered')
    await until('the connection to close', () => server.open() === 0)
  })
})

describe('health watch of a silent core', () => {
  it('cuts the connection if another core answers, and uses the silent core again after it answers a probe', async () => {
    const [silent, other] = [await startServer('127.0.0.1'), await startServer('127.0.0.1')]
    const urls = [silent, other].map(({ port }) => `http://127.0.0.1:${port}`)
    const { cores } = connect(urls)
    await until('both connections', () => silent.open() === 1 && other.open() === 1)
    silent.silence(true)
    await until('the connection to be cut', () => silent.connections() > 1)
    expect(other.connections()).toBe(1)
    for (let call = 0; call < 20; call++)
      expect(
        await cores.call(
          async ({ url }) => url,
          () => 'answered',
        ),
      ).toBe(urls[1])
    silent.silence(false)
    const asked = new Set<string>()
    await until('the next call to the core', async () => {
      asked.add(
        await cores.call(
          async ({ url }) => url,
          () => 'answered',
        ),
      )
      return asked.size === 2
    })
  })

  it('throws no uncaught exception after it cuts a connection with open calls', async () => {
    const [silent, other] = [await startServer('127.0.0.1'), await startServer('127.0.0.1')]
    const { cores } = connect([silent, other].map(({ port }) => `http://127.0.0.1:${port}`))
    await until('both connections', () => silent.open() === 1 && other.open() === 1)
    // Opens calls on the silent core and waits until the health watch cuts their connection. An
    // uncaught exception in the next 12 s fails the test.
    silent.silence(true)
    cores.follow({
      added({ transport, url }) {
        if (!url.endsWith(`:${silent.port}`)) return
        const header = new Headers()
        const { listConversations } = MessagingService.method
        for (let call = 0; call < 3; call++) {
          transport.unary(listConversations, undefined, undefined, header, {}).catch(() => {})
        }
      },
      removed() {},
    })
    await until('the connection to be cut', () => silent.connections() > 1)
    silent.silence(false)
    await delay(12_000)
    expect(silent.open()).toBe(1)
  })

  it('keeps the connection for the first seconds if there is no other core', async () => {
    const server = await startServer('127.0.0.1')
    connect([`http://127.0.0.1:${server.port}`])
    await until('a connection', () => server.open() === 1)
    server.silence(true)
    await delay(1_500)
    expect([server.open(), server.connections()]).toEqual([1, 1])
  })

  it('sends one probe at a time, at growing intervals', async () => {
    const server = await startServer('127.0.0.1')
    let open = 0
    let most = 0
    let questions = 0
    const { cores } = connect([`http://127.0.0.1:${server.port}`])
    cores.follow({
      added(core) {
        const transport = core.transport as unknown as { probe(signal: AbortSignal): Promise<void> }
        transport.probe = (signal) => {
          questions++
          most = Math.max(most, ++open)
          return new Promise((_, reject) =>
            signal.addEventListener('abort', () => {
              open--
              reject(new Error('no answer'))
            }),
          )
        }
      },
      removed() {},
    })
    await delay(4_000)
    expect(most).toBe(1)
    expect(questions).toBeLessThan(6)
  })
})
