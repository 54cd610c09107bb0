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
import { coreCertificates } from '../../test/support/core-certificates.ts'
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
    create: (handler: http.RequestListener) => createTlsListener({ files: tlsFiles(), asksClients: false }, handler),
  },
])('$name', ({ protocol, create }) => {
  /** Starts the listener. `GET /held` is answered after `release`, every other path at once. */
  async function start() {
    const called = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const listener = create(async (request, response) => {
      if (request.url === '/held') {
        called.resolve()
        await held.promise
      }
      response.end('answer')
    })
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
      /** Opens a connection without a request. */
      async open() {
        const socket = protocol === https ? tls.connect(target) : net.connect(target)
        await once(
          socket.on('error', () => {}),
          protocol === https ? 'secureConnect' : 'connect',
        )
        return socket
      },
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
    await once(socket, 'close')
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
})
