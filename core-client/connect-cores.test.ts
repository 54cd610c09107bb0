import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { itLong } from '../test/support/is-long.ts'
import { until } from '../test/support/until.ts'
import { connectCores, followCoreUrls } from './connect-cores.ts'
import type { CoreNode, CorePool } from './core-pool.ts'
import { parseCoreUrls } from './core-settings.ts'

/** A server on a loopback address. It answers `/livez` until a test makes it stop answering. */
async function startServer(address: string, port = 0) {
  const sockets = new Set<Socket>()
  let silent = false
  let closes = false
  let requests = 0
  const server = createServer((_request, response) => {
    requests++
    if (closes) response.shouldKeepAlive = false
    if (!silent) response.end('{}')
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(port, address)
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    open: () => sockets.size,
    requests: () => requests,
    closeAfterAnswers: () => {
      closes = true
    },
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

/** Calls one core of the pool. Returns the code and the text of the failure. */
async function callAt(cores: CorePool, url: string) {
  const found = Promise.withResolvers<CoreNode>()
  cores.follow({ added: (core) => void (core.url === url && found.resolve(core)), removed() {} })
  const { listConversations } = MessagingService.method
  const { transport } = await found.promise
  const error = await transport.unary(listConversations, undefined, undefined, undefined, {}).catch(ConnectError.from)
  return error instanceof ConnectError ? [error.code, error.rawMessage] : 'answered'
}

it('CORE_URLS accepts http and https URLs, and dns URLs only with a port', () => {
  expect(parseCoreUrls('http://a:1, https://b ,dns://core:8090,')).toEqual([
    'http://a:1',
    'https://b',
    'dns://core:8090',
  ])
  for (const wrong of ['', ',', 'a:1', 'dns://core', 'dns://u:p@core:1', 'ftp://a', 'http://u@a']) {
    expect(() => parseCoreUrls(wrong)).toThrow(/^CORE_URLS must be/)
  }
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
      lookUpEveryMs: 1,
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
  /** Starts two cores and a call that the first one does not answer. */
  async function startTwo() {
    const [silent, other] = [await startServer('127.0.0.1'), await startServer('127.0.0.1')]
    const urls = [silent, other].map(({ port }) => `http://127.0.0.1:${port}`)
    const { cores } = connect(urls)
    // The calls below go around the pool.
    cores.follow({ added() {}, removed() {}, isBusy: () => true })
    await until('both connections', () => silent.open() > 0 && other.open() > 0)
    silent.silence(true)
    return { silent, urls, cores, running: callAt(cores, urls[0]!) }
  }

  it('cuts its connections if another core answers, and uses it again after it answers a probe', async () => {
    const { silent, urls, cores, running } = await startTwo()
    expect(await running).toEqual([Code.Unavailable, 'core does not answer'])
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

  it('probes less often while nobody uses the cores', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => startServer('127.0.0.1')))
    const [resting, calling, streaming] = servers.map(({ port }) => connect([`http://127.0.0.1:${port}`]).cores)
    await until('rest', () => !resting!.isInUse() && !calling!.isInUse() && !streaming!.isInUse())
    const call = Promise.withResolvers<void>()
    onTestFinished(() => call.resolve())
    void calling!.call(
      () => call.promise,
      () => 'answered',
    )
    streaming!.follow({ added() {}, removed() {}, isBusy: () => true })
    const before = servers.map(({ requests }) => requests())
    const probes = () => servers.map(({ requests }, index) => requests() - before[index]!)
    await until('six probes', () => probes().every((count, index) => index === 0 || count >= 6))
    expect(probes()[0]).toBeLessThan(5)
  })

  itLong('throws no uncaught exception after it cuts connections with open calls', async () => {
    const { silent, urls, cores, running } = await startTwo()
    // An uncaught exception in the next 12 s fails the test.
    const calls = [callAt(cores, urls[0]!), callAt(cores, urls[0]!)]
    await Promise.all([running, ...calls])
    silent.silence(false)
    await delay(12_000)
    expect(silent.open()).toBe(1)
  })

  itLong('keeps running calls for the first seconds if there is no other core', async () => {
    const server = await startServer('127.0.0.1')
    const url = `http://127.0.0.1:${server.port}`
    const { cores } = connect([url])
    await until('a connection', () => server.open() > 0)
    server.silence(true)
    const running = callAt(cores, url)
    expect(await Promise.race([running, delay(1_500, 'running')])).toBe('running')
  })

  it('skips a core whose answer to a probe closes the connection, because the core is starting or stopping', async () => {
    const [unready, other] = [await startServer('127.0.0.1'), await startServer('127.0.0.1')]
    const urls = [unready, other].map(({ port }) => `http://127.0.0.1:${port}`)
    const { cores } = connect(urls)
    const next = () =>
      cores.call(
        async ({ url }) => url,
        () => 'answered',
      )
    await until('both connections', () => unready.open() > 0 && other.open() > 0)
    unready.closeAfterAnswers()
    await until('the core to be skipped', async () => {
      const called = [await next(), await next(), await next(), await next()]
      return called.every((url) => url === urls[1])
    })
  })

  itLong('sends one probe at a time, at growing intervals', async () => {
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
