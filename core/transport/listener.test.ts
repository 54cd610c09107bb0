import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import tls from 'node:tls'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTlsFiles } from '../../platform/tls/tls-files.ts'
import { coreCertificates } from '../../test/support/certificates.ts'
import { http2Bytes } from '../../test/support/http2-bytes.ts'
import { someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { createPlainListener, createTlsListener } from './listener.ts'

const { authority, core } = coreCertificates.first

function tlsFiles() {
  const folder = mkdtempSync(join(tmpdir(), 'listener-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const files = { cert: join(folder, 'core.pem'), key: join(folder, 'core.key') }
  writeFileSync(files.cert, core.cert)
  writeFileSync(files.key, core.key)
  return createTlsFiles(files)
}

describe.each([
  { name: 'a plain listener', protocol: http, create: createPlainListener },
  {
    name: 'a TLS listener',
    protocol: https,
    create: (handler: http.RequestListener, headMs?: number) =>
      createTlsListener({ files: tlsFiles(), asksClients: false }, handler, headMs),
  },
])('$name', ({ protocol, create }) => {
  /** Starts the listener. `GET /held` is answered after `release`, every other path at once. */
  async function start(headMs?: number) {
    const called = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const listener = create(async (request, response) => {
      if (request.url === '/held') {
        called.resolve()
        await held.promise
      }
      request.resume()
      response.end('answer')
    }, headMs)
    await new Promise<void>((resolve) => listener.server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      for (const socket of listener.sockets) socket.destroy()
      listener.server.close()
    })
    const agent = new protocol.Agent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const { port } = listener.server.address() as AddressInfo
    const target = { host: '127.0.0.1', port, ca: authority }
    const request = (path: string) =>
      new Promise<{ text: string; headers: http.IncomingHttpHeaders }>((resolve, reject) => {
        protocol
          .get({ ...target, path, agent }, async (response) => {
            let text = ''
            for await (const chunk of response) text += chunk
            resolve({ text, headers: response.headers })
          })
          .on('error', reject)
      })
    return {
      listener,
      called: called.promise,
      release: held.resolve,
      get: async (path: string) => (await request(path)).text,
      headers: async (path: string) => (await request(path)).headers,
      /**
       * Opens a connection without a request. Repeats it if the listener closes the connection before the
       * handshake has ended, as it may on a busy machine.
       */
      open: (alpn = 'http/1.1') =>
        until('a connection', () => {
          const socket = protocol === https ? tls.connect({ ...target, ALPNProtocols: [alpn] }) : net.connect(target)
          socket.on('error', () => {})
          return once(socket, protocol === https ? 'secureConnect' : 'connect').then(
            () => socket,
            () => undefined,
          )
        }),
    }
  }

  it('`endWhenIdle` closes an HTTP/1.1 connection after its running request has finished', async () => {
    const { listener, get, called, release } = await start()
    const answer = get('/held')
    await called
    listener.endWhenIdle()
    release()
    expect(await answer).toBe('answer')
    await until('the end of the connection', () => listener.sockets.size === 0)
  })

  it('`endWhenIdle` answers a request on an idle HTTP/1.1 connection, and then closes the connection', async () => {
    const { listener, get } = await start()
    await get('/')
    listener.endWhenIdle()
    expect([listener.sockets.size, await get('/')]).toEqual([1, 'answer'])
    await until('the end of the connection', () => listener.sockets.size === 0)
    await expect(get('/')).resolves.toBe('answer')
  })

  it('`endWhenIdle` closes an idle HTTP/1.1 connection after a second', async () => {
    const { listener, get } = await start()
    await get('/')
    listener.endWhenIdle()
    await until('the end of the connection', () => listener.sockets.size === 0)
  })

  it('announces how long it keeps an idle HTTP/1.1 connection', async () => {
    const { headers } = await start()
    expect(await headers('/')).toMatchObject({ connection: 'keep-alive', 'keep-alive': 'timeout=75' })
  })

  it('closes an HTTP/1.1 connection with more than 100 waiting requests', async () => {
    const { open } = await start()
    const socket = await open()
    const request = 'GET /held HTTP/1.1\r\nHost: x\r\n\r\n'
    socket.write(request.repeat(102))
    await until('the end of the connection', () => socket.closed)
  })

  it('does not read an HTTP/1.1 connection further while requests wait for an answer', async () => {
    const { listener, open, called } = await start()
    const bytesRead = () => [...listener.sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0)
    const socket = await open()
    socket.write('GET /held HTTP/1.1\r\nHost: x\r\n\r\n')
    await called
    const body = Buffer.alloc(48 * 1024)
    const request = Buffer.concat([
      Buffer.from(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`),
      body,
    ])
    for (let count = 0; count < 90; count++) socket.write(request)
    await until('a pause of the listener', async () => {
      const before = bytesRead()
      await delay(50)
      return bytesRead() > 0 && bytesRead() === before
    })
    expect(bytesRead()).toBeLessThan(1024 * 1024)
  })

  const { preface, settings, head, halfHead } = http2Bytes
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
  it.each<[string, string, (string | Buffer)[]]>(
    someOf(
      [
        ['nothing', 'http/1.1', []],
        ['one byte', 'http/1.1', ['P']],
        ['half a head', 'http/1.1', ['GET / HTTP/1.1\r\nHost']],
        ['a request and half a head', 'http/1.1', [request, 'GET / HTTP/1.1\r\nHost']],
        ['nothing over HTTP/2', 'h2', []],
        ['half a preface', 'h2', [preface.subarray(0, 20)]],
        ['a preface without settings', 'h2', [preface]],
        ['settings without a call', 'h2', [preface, settings]],
        ['half a head over HTTP/2', 'h2', [preface, settings, halfHead(1, '/')]],
        ['a call and half a head over HTTP/2', 'h2', [preface, settings, head(1, '/'), halfHead(3, '/')]],
      ],
      8,
    ),
  )('closes a connection that sends %s', async (_, alpn, parts) => {
    const { open } = await start(100)
    const socket = await open(alpn)
    socket.resume()
    for (const part of parts) socket.write(part)
    await until('the end of the connection', () => socket.closed)
  })

  it('closes a connection that sends a head byte by byte', async () => {
    const { open } = await start(100)
    const socket = await open()
    socket.resume().write('GET / HTTP/1.1\r\nX: ')
    while (!socket.closed) {
      socket.write('x')
      await delay(20)
    }
  })

  it('keeps a connection that waits for an answer', async () => {
    const { get, called, release } = await start(100)
    // On a busy machine, the listener may close a connection before it has read the head.
    const { answer } = await until('the call', async () => {
      const answer = get('/held')
      return Promise.race([
        called.then(() => ({ answer })),
        answer.then(
          () => undefined,
          () => undefined,
        ),
      ])
    })
    await delay(300)
    release()
    expect(await answer).toBe('answer')
  })

  it('answers a request that arrives byte by byte', async () => {
    const { open } = await start()
    const socket = await open()
    let text = ''
    socket.on('data', (chunk) => (text += chunk)).setNoDelay()
    for (const byte of `POST ${request.slice(4)}`) {
      socket.write(byte)
      await delay(1)
    }
    await until('the answer', () => text.includes('answer'))
    socket.destroy()
  })
})
