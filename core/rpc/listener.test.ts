import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
    const get = (path: string) =>
      new Promise<string>((resolve, reject) => {
        protocol
          .get({ host: '127.0.0.1', port, path, agent, ca: authority }, async (response) => {
            let text = ''
            for await (const chunk of response) text += chunk
            resolve(text)
          })
          .on('error', reject)
      })
    return { listener, get, called: called.promise, release: held.resolve }
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

  it('`endWhenIdle` closes an idle HTTP/1.1 connection at once', async () => {
    const { listener, get } = await start()
    await get('/')
    expect(listener.sockets.size).toBe(1)
    listener.endWhenIdle()
    await until('the end of the connection', () => listener.sockets.size === 0)
  })
})
