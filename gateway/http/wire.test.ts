import { connectNodeAdapter } from '@connectrpc/connect-node'
import { expect, onTestFinished, test } from 'vitest'
import { createCoreTransport } from '../../core-client/core-transport.ts'
import { listenForRpc, type RpcPort } from '../../test/support/rpc-port.ts'
import { refusal } from '../test/core-answers.ts'
import { createTestCore, type TestCore } from '../test/test-core.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'

/** The scripted core on a real port that can be stopped and restarted. */
function createCoreOnWire(core: TestCore) {
  let running: RpcPort | undefined
  let port = 0

  async function listen(): Promise<void> {
    running = await listenForRpc(connectNodeAdapter({ routes: core.routes }), port)
    port = running.port
  }

  async function kill(): Promise<void> {
    await running?.kill()
    running = undefined
  }

  onTestFinished(kill)
  return { listen, kill, url: () => `http://127.0.0.1:${port}` }
}

async function startOnWire(count: number) {
  const cores = Array.from({ length: count }, createTestCore)
  const wires = cores.map(createCoreOnWire)
  for (const wire of wires) await wire.listen()
  for (const [index, core] of cores.entries()) core.transport = createCoreTransport(wires[index]!.url())
  const gateway = await startTestGateway({ cores })
  await expect.poll(() => cores.every(({ links }) => links.length === 1)).toBe(true)
  return { gateway, cores, wires }
}

test('a send succeeds, and a session error reaches the visitor,', async () => {
  const { gateway, cores } = await startOnWire(1)
  expect((await gateway.call('POST', '/messages', { body: message() })).status).toBe(202)
  cores[0]!.grants.set('grant-2', 'SessionExpired')
  const refused = await gateway.call('GET', '/messages', { headers: { authorization: 'Bearer grant-2' } })
  expect([refused.status, await refused.json()]).toMatchObject([401, { code: 'SessionExpired', terminal: true }])
})

test('a stream stays open and misses no event if its core restarts', async () => {
  const { gateway, cores, wires } = await startOnWire(1)
  const abort = new AbortController()
  onTestFinished(() => abort.abort())
  const { body } = await gateway.call('GET', '/events', { signal: abort.signal })
  let text = ''
  void (async () => {
    for await (const chunk of body!) text += Buffer.from(chunk).toString()
  })().catch(() => {})
  cores[0]!.publish('message.received')
  await expect.poll(() => text).toContain('id: e1-1\n')
  await wires[0]!.kill()
  const failed = await gateway.call('POST', '/messages', { body: message() })
  expect([failed.status, await failed.json()]).toMatchObject([503, { code: 'ServiceUnavailable' }])
  cores[0]!.publish('message.received')
  await wires[0]!.listen()
  await expect.poll(() => text, { timeout: 10_000 }).toContain('id: e1-2\n')
  expect(text.match(/^id: /gm)).toHaveLength(2)
  expect((await gateway.call('POST', '/messages', { body: message() })).status).toBe(202)
})

test('a core can reject an upload before it is complete, and an upload gets 503 if the core dies', async () => {
  const { gateway, cores, wires } = await startOnWire(1)
  const upload = () =>
    gateway.call('POST', '/commands/screenshots/scr_1/upload', {
      body: new Uint8Array(5_000_000),
      headers: { 'content-type': 'image/png' },
    })
  cores[0]!.onUploadPart = (place) => {
    if (place === 2) throw refusal('ConsentRequired')
  }
  const refused = await upload()
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'ConsentRequired' }])
  cores[0]!.onUploadPart = (place) => (place === 2 ? wires[0]!.kill() : undefined)
  const failed = await upload()
  expect([failed.status, await failed.json()]).toMatchObject([503, { code: 'ServiceUnavailable', retryable: true }])
})
