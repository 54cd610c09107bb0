import { describe, expect, test } from 'vitest'
import { refusal } from '../test/core-answers.ts'
import { createTestCore, GRANT, SITE } from '../test/test-core.ts'
import { startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

const png = (byteLength: number) => new Uint8Array(byteLength).fill(7)
const maxBytes = 5_242_880
const path = '/commands/screenshots/scr_1/upload'

const upload = ({ call }: TestGateway, body: Uint8Array, headers: Record<string, string | null> = {}) =>
  call('POST', path, { body, headers: { 'content-type': 'image/png', ...headers } })

async function codeOf(response: Response): Promise<[number, string]> {
  return [response.status, ((await response.json()) as { code: string }).code]
}

describe('a screenshot upload', () => {
  test('is streamed to the core as a header part, the bytes in order and an end part', async () => {
    const gateway = await startTestGateway()
    const bytes = Uint8Array.from({ length: maxBytes }, (_, index) => index % 251)
    const response = await upload(gateway, bytes, { 'content-type': 'Image/PNG; q=1' })
    expect([response.status, await response.json()]).toEqual([
      201,
      { requestId: 'scr_1', state: 'uploaded', byteLength: maxBytes, sha256: 'ab12' },
    ])
    const [parts] = gateway.core.uploads
    expect(parts!.at(0)).toMatchObject({
      case: 'header',
      value: {
        credentials: { accessGrant: GRANT, origin: SITE },
        requestId: 'scr_1',
        contentType: 'image/png',
        idempotencyKey: 'op-1',
        byteLength: BigInt(maxBytes),
      },
    })
    expect(parts!.at(-1)).toMatchObject({ case: 'end', value: { byteLength: BigInt(maxBytes) } })
    const chunks = parts!.flatMap((part) => (part.case === 'chunk' ? [part.value] : []))
    expect(chunks.length).toBeGreaterThan(10)
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
  })

  test('is checked in the order of the contract', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_CALLS_PER_MINUTE: '1' } })
    const wrong: Record<string, string | null> = {
      origin: 'https://evil.example',
      'x-service-widget-version': '2.0',
      authorization: null,
      'content-type': 'image/gif',
      'idempotency-key': 'not a key',
    }
    const order = ['OriginNotAllowed', 'WidgetVersionUnsupported', 'GrantMissing', 'UnsupportedMediaType']
    for (const [index, code] of [...order, 'IdempotencyKeyInvalid', 'PayloadTooLarge'].entries()) {
      const headers = Object.fromEntries(Object.entries(wrong).slice(index))
      expect((await codeOf(await upload(gateway, png(maxBytes + 1), headers)))[1]).toBe(code)
    }
    expect(gateway.core.count('uploadScreenshot')).toBe(0)
    const query = await gateway.call('POST', `${path}?x=1`, { body: png(9), headers: { 'content-type': 'image/png' } })
    expect(await codeOf(query)).toEqual([400, 'ValidationFailed'])
    expect((await upload(gateway, png(9))).status).toBe(201)
    expect(await codeOf(await upload(gateway, png(9)))).toEqual([429, 'RateLimited'])
  })

  test.each(['gzip', 'br'])('is rejected if compressed (%s)', async (encoding) => {
    const gateway = await startTestGateway()
    expect(await codeOf(await upload(gateway, png(9), { 'content-encoding': encoding }))).toEqual([
      415,
      'UnsupportedMediaType',
    ])
  })

  test('can be rejected while it arrives, and the connection stays usable', async () => {
    const gateway = await startTestGateway()
    gateway.core.onUploadPart = (place) => {
      if (place === 2) throw refusal('ConsentRequired')
    }
    const answer = await gateway.raw(
      [
        `POST /api/integrations/v1/widget${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\n`,
        `Authorization: Bearer ${GRANT}\r\nIdempotency-Key: op-1\r\nContent-Type: image/png\r\nContent-Length: 3000000\r\n\r\n`,
        'x'.repeat(3_000_000),
        'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      ].join(''),
    )
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 403', 'HTTP/1.1 200'])
    expect(answer).toContain('"code":"ConsentRequired"')
  })

  test('has no end part if the browser disconnects', async () => {
    const gateway = await startTestGateway()
    gateway.core.onUploadPart = (place) => {
      if (place === 2) socket.destroy()
    }
    const { socket, closed } = openSocket(
      gateway.port,
      `POST /api/integrations/v1/widget${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\nAuthorization: Bearer ${GRANT}\r\nIdempotency-Key: op-1\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`,
    )
    await closed
    await expect.poll(() => gateway.core.openUploads).toBe(0)
    expect(gateway.core.uploads[0]!.map((part) => part.case)).toEqual(['header', 'chunk'])
  })

  test('fails over to another core, and gets 503 if no core is reachable', async () => {
    const cores = [createTestCore(), createTestCore()]
    const gateway = await startTestGateway({ cores })
    await gateway.call('GET', '/messages')
    cores[0]!.down = true
    for (let times = 0; times < 4; times += 1) expect((await upload(gateway, png(100_000))).status).toBe(201)
    expect(cores[1]!.uploads).toHaveLength(4)
    cores[1]!.down = true
    const failed = await upload(gateway, png(100_000))
    expect(await codeOf(failed)).toEqual([503, 'ServiceUnavailable'])
    expect(failed.headers.get('retry-after')).toBe('1')
  })
})
