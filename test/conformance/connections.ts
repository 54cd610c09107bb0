import { connect, type Socket } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { BASE, message } from './client.ts'
import { concurrentRule, rule } from './rule.ts'
import type { Suite } from './suite.ts'

const DESTROYED_WITHIN_MS = 5_000
/** Allowance for a busy machine. */
const SLACK_MS = 2_000

/** Section 1, second edition: connections and raw requests. */
export function connectionRules(suite: () => Suite): void {
  /** Opens a connection whose client side stays open after the server ends it. */
  function open(bytes: string) {
    const { port } = new URL(suite().roomy.stack.gateways[0]!.url)
    const socket: Socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
    let text = ''
    const client = { socket, text: () => text, answers: () => answersIn(text), endedAt: 0, brokenAt: 0 }
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => {
      client.endedAt = performance.now()
    })
    socket.on('error', () => {
      client.brokenAt = performance.now()
    })
    socket.write(bytes)
    return client
  }

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

  const idsAndStatuses = ({ answers }: ReturnType<typeof open>) => answers().map(({ id, status }) => [id, status])

  rule('C1.21', async () => {
    for (const bytes of [
      `GET ${BASE}/messages HTTP/1.1\r\nHost: x\r\nOrigin: ${suite().roomy.stack.demo.origin}\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`,
      request('POST', '/messages', 'a', undefined, 'Transfer-Encoding: chunked\r\n', 'xyz\r\n'),
      'not HTTP\r\n\r\n',
    ]) {
      const client = open(bytes)
      await until('the answer', () => client.endedAt > 0)
      const [answer] = client.answers()
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
        await until('the answer', () => socket.endedAt > 0)
        expect(JSON.parse(socket.answers()[0]!.body).code, `${path} ${framing}`).toBe('ValidationFailed')
      }
    }
  })

  rule('C1.23', async () => {
    for (const path of ['/x/../config/pk_demo', '/%2e/config/pk_demo', '//config/pk_demo', '/config/pk_demo/']) {
      const socket = open(request('GET', path, 'a', undefined, 'Connection: close\r\n'))
      await until('the answer', () => socket.endedAt > 0)
      expect(JSON.parse(socket.answers()[0]!.body).code, path).toBe('NotFound')
    }
  })

  rule('C1.60', async () => {
    const visitor = await suite().roomy.client.visitor()
    const list = (id: string) => request('GET', '/messages', id, visitor)
    const client = open([send('a', visitor), list('b'), list('c'), send('d', visitor)].join(''))
    onTestFinished(() => void client.socket.destroy())
    await until('four answers', () => client.answers().length === 4)
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
    await until('the end', () => before.endedAt > 0)
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
      async () => {
        const client = open(await bytes())
        await until('the end', () => client.endedAt > 0)
        // The peer answers a write with a reset only if the connection is destroyed, not half-open.
        await until('the reset', () => {
          if (client.brokenAt === 0) client.socket.write(' ')
          return client.brokenAt > 0
        })
        expect(client.brokenAt - client.endedAt).toBeLessThan(DESTROYED_WITHIN_MS + SLACK_MS)
        client.socket.destroy()
      },
      detail,
    )
  }
}

function answersIn(text: string) {
  return text
    .split(/(?=HTTP\/1\.1 \d{3} )/)
    .filter(Boolean)
    .map((answer) => {
      const [head = '', ...body] = answer.split('\r\n\r\n')
      const id = /\r\nx-correlation-id: (\S+)/i.exec(head)?.[1]
      return { head, body: body.join('\r\n\r\n'), id, status: Number(head.split(' ')[1]) }
    })
}
