import { describe, expect, test } from 'vitest'
import { SITE } from '../test/test-core.ts'
import { sharedGateway, startTestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

const PATH = '/api/integrations/v1/widget/messages'
const HEAD = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\nAuthorization: Bearer grant-1\r\nIdempotency-Key: op-1\r\nContent-Type: application/json\r\n`
const BODY = '{"clientOperationId":"op-1","body":"Hello","contentType":"text"}'
const LENGTH = `Content-Length: ${BODY.length}\r\n`
const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
/** A second request. A proxy in front of the gateway may treat it as part of the first body. */
const HIDDEN = 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

const answersOf = (text: string) => text.split(/(?=HTTP\/1\.1 \d{3} )/).filter(Boolean)
const envelopeOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1))

/** For cases that leave no trace in a gateway. */
const shared = sharedGateway()

describe('a request with a second request after its body', () => {
  test.each<[string, string]>([
    ['a length and chunks', `${LENGTH}${CHUNKED}\r\n${CHUNKS}`],
    ['chunks and a length', `${CHUNKED}Content-Length: 4\r\n\r\n${CHUNKS}`],
    ['chunks and a length of nothing', `${CHUNKED}Content-Length: 0\r\n\r\n${CHUNKS}`],
    ['two lengths', `${LENGTH}Content-Length: 0\r\n\r\n${BODY}`],
    ['two lengths that agree', `${LENGTH}${LENGTH}\r\n${BODY}`],
    ['two lengths in one header', `Content-Length: ${BODY.length}, 0\r\n\r\n${BODY}`],
    ['a length with a sign', `Content-Length: +${BODY.length}\r\n\r\n${BODY}`],
    ['a negative length', `Content-Length: -1\r\n\r\n${BODY}`],
    ['a length in hex', `Content-Length: 0x${BODY.length.toString(16)}\r\n\r\n${BODY}`],
    ['a length that overflows', `Content-Length: 18446744073709551680\r\n\r\n${BODY}`],
    ['an empty length', `Content-Length:\r\n\r\n${BODY}`],
    ['a length after a space', `Content-Length : ${BODY.length}\r\n\r\n${BODY}`],
    ['a length in a folded header', `A: b\r\n Content-Length: 0\r\n${LENGTH}\r\n${BODY}`],
    ['chunks that are not last', `Transfer-Encoding: chunked, identity\r\n\r\n${CHUNKS}`],
    ['chunks twice', `Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n${CHUNKS}`],
    ['an unknown encoding', `Transfer-Encoding: xchunked\r\n\r\n${CHUNKS}`],
    ['an encoding after a tab and a control character', `Transfer-Encoding:\x0bchunked\r\n\r\n${CHUNKS}`],
    ['a bare line feed between headers', `A: b\nContent-Length: 0\r\n${LENGTH}\r\n${BODY}`],
    ['a bare carriage return in a header', `A: b\rContent-Length: 0\r\n${LENGTH}\r\n${BODY}`],
    ['a null byte in a header', `A: b\0c\r\n${LENGTH}\r\n${BODY}`],
    ['a header without a name', `: b\r\n${LENGTH}\r\n${BODY}`],
    ['a chunk size that overflows', `${CHUNKED}\r\nffffffffffffffffff\r\n${BODY}\r\n0\r\n\r\n`],
    ['an invalid chunk size', `${CHUNKED}\r\nxyz\r\n${BODY}\r\n0\r\n\r\n`],
    ['a chunk that is longer than its size', `${CHUNKED}\r\n1\r\n${BODY}\r\n0\r\n\r\n`],
    ['a bare line feed after a chunk size', `${CHUNKED}\r\n${BODY.length.toString(16)}\n${BODY}\r\n0\r\n\r\n`],
  ])('gets 400, and the second request gets no answer, if the end of the body is ambiguous: %s', async (_, rest) => {
    const { raw, core } = await shared()
    const answers = answersOf(await raw(`${HEAD}${rest}${HIDDEN}`))
    expect(answers).toHaveLength(1)
    expect(answers[0]).toMatch(/^HTTP\/1\.1 400 .*\r\nConnection: close\r\n/is)
    expect(envelopeOf(answers[0]!)).toMatchObject({ code: 'ValidationFailed', retryable: false, terminal: false })
    expect(core.count('sendVisitorMessages')).toBe(0)
  })

  test('is served, and so is the second request, if the end of the body is unambiguous', async () => {
    const { raw } = await startTestGateway()
    for (const rest of [`${LENGTH}\r\n${BODY}`, `${CHUNKED}\r\n${CHUNKS}`]) {
      const [sent, next] = answersOf(await raw(`${HEAD}${rest}${HIDDEN}`))
      expect(sent).toMatch(/^HTTP\/1\.1 202 /)
      expect(next).toMatch(/^HTTP\/1\.1 200 .*"status":"ok"/s)
    }
  })
})

test.each([
  ['a broken chunk', `${HEAD}X-Correlation-Id: abc\r\n${CHUNKED}\r\nxyz\r\n`, 400],
  ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\nX-Correlation-Id: abc\r\n\r\n', 405],
])('the answer to %s has the correlation id of the request', async (_, bytes, status) => {
  const { raw } = await startTestGateway()
  const answer = await raw(bytes)
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nx-correlation-id: abc\\r\\n`, 'i'))
  expect(envelopeOf(answer)).toMatchObject({ correlationId: 'abc' })
})

test.each([
  ['a length', `${LENGTH}\r\n${BODY.slice(0, 20)}`],
  ['chunks', `${CHUNKED}\r\n${CHUNKS.slice(0, 20)}`],
  ['nothing of it', `${LENGTH}\r\n`],
])('a request with an incomplete body is not executed (%s)', async (_, rest) => {
  const { port, core, call } = await startTestGateway()
  const client = openSocket(port, '', { allowHalfOpen: false })
  client.socket.end(`${HEAD}${rest}`, 'latin1')
  const answer = await client.closed
  if (answer !== '') expect(envelopeOf(answer)).toMatchObject({ code: 'ValidationFailed' })
  expect((await call('GET', '/messages')).status).toBe(200)
  expect(core.count('sendVisitorMessages')).toBe(0)
})

test.each([
  ['Authorization', 'Authorization: Bearer grant-1\r\nAuthorization: Bearer grant-2\r\n'],
  ['Origin', 'Authorization: Bearer grant-1\r\nOrigin: https://evil.example\r\n'],
])('a repeated %s header does not change the identity of the request', async (_, extra) => {
  const { raw, core } = await startTestGateway()
  core.grants.set('grant-2', 'ok')
  const head = `GET ${PATH} HTTP/1.1\r\nHost: x\r\nOrigin: ${SITE}\r\nX-Service-Widget-Version: 1.0\r\nConnection: close\r\n`
  const [answer = ''] = answersOf(await raw(`${head}${extra}\r\n`))
  // The gateway uses the first value or rejects the request. It must not use the second value.
  expect(answer).toMatch(/^HTTP\/1\.1 (200|400|401|403) /)
  expect(JSON.stringify(core.calls.map(({ request }) => request ?? null))).not.toMatch(/grant-2|evil/)
})
