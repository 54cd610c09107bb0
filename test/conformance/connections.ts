import { expect, onTestFinished } from 'vitest'
import { answersIn, type RawSocket } from '../support/raw-socket.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { BASE, message } from './client.ts'
import { openGateway } from './raw-stream.ts'
import { concurrentRule, inTime, rule } from './rule.ts'
import type { Suite } from './suite.ts'

const DESTROYED_WITHIN_MS = 5_000
/** Additional time that is allowed on a busy machine. */
const SLACK_MS = 2_000

/** Tests of contract section 1: connections and raw requests. */
export function connectionRules(suite: () => Suite): void {
  const open = (bytes: string) => openGateway(suite().roomy, bytes, 'utf8')

  function request(method: string, path: string, id: string, visitor?: Visitor, more = '', body = '') {
    const authorization = visitor ? `Authorization: Bearer ${visitor.session.accessGrant}\r\n` : ''
    return (
      `${method} ${BASE}${path} HTTP/1.1\r\nHost: x\r\n` +
      `Origin: ${suite().roomy.stack.demo.origin}\r\nX-Service-Widget-Version: 1.0\r\n` +
      `X-Correlation-Id: ${id}\r\n${authorization}${more}\r\n${body}`
    )
  }

  function send(id: string, visitor: Visitor) {
    const body = JSON.stringify(message(id))
    const more = `Idempotency-Key: ${id}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    return request('POST', '/messages', id, visitor, more, body)
  }

  const idsAndStatuses = (client: RawSocket) =>
    answersIn(client.text()).map(({ correlationId, status }) => [correlationId, status])

  rule('C1.21', async () => {
    for (const bytes of [
      `GET ${BASE}/messages HTTP/1.1\r\nHost: x\r\nOrigin: ${suite().roomy.stack.demo.origin}\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
      request('POST', '/messages', 'a', undefined, 'Transfer-Encoding: chunked\r\n', 'xyz\r\n'),
      'not HTTP\r\n\r\n',
    ]) {
      const client = open(bytes)
      await client.ended
      const [answer] = answersIn(client.text())
      expect(answer!.status).toBe(400)
      expect(answer!.head.toLowerCase()).not.toContain('access-control-')
      expect(JSON.parse(answer!.body)).toMatchObject({ code: 'ValidationFailed', retryable: false, terminal: false })
      client.socket.destroy()
    }
  })

  rule('C1.22', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const more = 'Idempotency-Key: op-1\r\n'
    for (const path of ['/messages', '/sessions', '/sessions/close', '/sessions/renew', '/typing', '/context/page']) {
      for (const [framing, body] of [
        ['', ''],
        ['Content-Length: 0\r\n', ''],
        ['Content-Type: text/plain\r\nContent-Length: 0\r\n', ''],
        ['Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
      ]) {
        const socket = open(request('POST', path, 'a', visitor, `Connection: close\r\n${more}${framing}`, body))
        await socket.ended
        expect(JSON.parse(answersIn(socket.text())[0]!.body).code, `${path} ${framing}`).toBe('ValidationFailed')
      }
    }
  })

  rule('C1.23', async () => {
    for (const path of ['/x/../config/pk_demo', '/%2e/config/pk_demo', '//config/pk_demo', '/config/pk_demo/']) {
      const socket = open(request('GET', path, 'a', undefined, 'Connection: close\r\n'))
      await socket.ended
      expect(JSON.parse(answersIn(socket.text())[0]!.body).code, path).toBe('NotFound')
    }
  })

  rule('C1.60', async () => {
    const visitor = await suite().roomy.client.visitor()
    const list = (id: string) => request('GET', '/messages', id, visitor)
    const client = open([send('a', visitor), list('b'), list('c'), send('d', visitor)].join(''))
    onTestFinished(() => void client.socket.destroy())
    await until('four answers', () => answersIn(client.text()).length === 4)
    expect(idsAndStatuses(client)).toEqual([
      ['a', 202],
      ['b', 200],
      ['c', 200],
      ['d', 202],
    ])
  })

  rule('C1.61', async () => {
    const visitor = await suite().roomy.client.visitor()
    const events = request('GET', '/events', 'e', visitor)
    const behind = open(send('a', visitor) + events)
    await until('the stream', () => behind.text().includes(': open'))
    expect(idsAndStatuses(behind)).toEqual([
      ['a', 202],
      ['e', 200],
    ])
    behind.socket.destroy()
    const before = open(events + send('b', visitor))
    await before.ended
    expect(idsAndStatuses(before)).toEqual([['e', 400]])
    expect(await visitor.history()).toHaveLength(1)
  })

  for (const [detail, bytes] of [
    ['CONNECT', async () => 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['malformed HTTP', async () => 'not HTTP\r\n\r\n'],
    [
      'a stream followed by a request',
      async () => {
        const visitor = await suite().roomy.client.visitor()
        return request('GET', '/events', 'e', visitor) + send('a', visitor)
      },
    ],
  ] as const) {
    concurrentRule(
      'C1.62',
      () =>
        inTime(async () => {
          const client = open(await bytes())
          await client.ended
          // If the server has only ended its side, a write still succeeds. If the server has
          // destroyed the connection, a write causes a reset.
          await until('the reset', () => {
            if (client.brokenAt === 0) client.socket.write(' ')
            return client.brokenAt > 0
          })
          client.socket.destroy()
          return client.brokenAt - client.endedAt < DESTROYED_WITHIN_MS + SLACK_MS
        }),
      detail,
    )
  }
}
