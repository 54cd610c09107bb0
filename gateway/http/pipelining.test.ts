import { describe, expect, onTestFinished, test } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { message, startTestGateway, type TestGateway } from '../test/test-gateway.ts'
import { answersIn, openSocket, type RawAnswer, requestBytes } from '../test/test-socket.ts'

const EVENTS = ['GET', '/events'] as const
const isStream = ({ status, head }: RawAnswer) => status === 200 && /content-type: text\/event-stream/i.test(head)

/** Delays the core's answer to history requests until the test releases it. */
function holdHistory({ core }: TestGateway) {
  let release = () => {}
  core.onList = () =>
    new Promise<void>((resolve) => {
      release = resolve
    })
  onTestFinished(() => release())
  return { isAsked: () => core.count('listVisitorMessages') > 0, release: () => release() }
}

describe('pipelined requests', () => {
  test('are answered in order, each with its own answer', async () => {
    const gateway = await startTestGateway()
    const ids = ['a', 'b', 'c', 'd']
    const client = openSocket(gateway.port, ids.map((id) => requestBytes('GET', '/messages', { id })).join(''))
    await expect.poll(() => answersIn(client.text()).map(({ correlationId }) => correlationId)).toEqual(ids)
  })

  test('are not executed before the previous answer is sent', async () => {
    const gateway = await startTestGateway()
    const history = holdHistory(gateway)
    const send = requestBytes('POST', '/messages', { id: 'b', body: message() })
    const client = openSocket(gateway.port, requestBytes('GET', '/messages', { id: 'a' }) + send)
    await expect.poll(history.isAsked).toBe(true)
    expect((await gateway.call('POST', '/sessions/close', { body: { scope: 'panel' } })).status).toBe(200)
    expect(gateway.core.count('sendVisitorMessages')).toBe(0)
    history.release()
    await expect.poll(() => answersIn(client.text()).map(({ status }) => status)).toEqual([200, 202])
  })

  test('are not executed if a previous answer closes the connection', async () => {
    const gateway = await startTestGateway()
    const send = requestBytes('POST', '/messages', { id: 'b', body: message() })
    const client = openSocket(
      gateway.port,
      requestBytes('GET', '/messages', { id: 'a', more: 'Connection: close\r\n' }) + send,
    )
    await expect.poll(client.isEnded).toBe(true)
    expect(answersIn(client.text()).map(({ status, correlationId }) => [status, correlationId])).toEqual([[200, 'a']])
    expect(gateway.core.count('sendVisitorMessages')).toBe(0)
  })

  test.each(
    someOf(
      [
        ['broken HTTP', 'no HTTP at all\r\n\r\n', 400],
        ['an overlong header', `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`, 400],
        ['a broken chunk', `POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400],
        ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
      ],
      1,
    ),
  )('are answered before the error for %s that follows them', async (_name, bytes, status) => {
    const gateway = await startTestGateway()
    const history = holdHistory(gateway)
    const client = openSocket(gateway.port, requestBytes('GET', '/messages', { id: 'a' }) + bytes)
    await expect.poll(history.isAsked).toBe(true)
    expect(client.text()).toBe('')
    history.release()
    await expect.poll(client.isEnded).toBe(true)
    const [first, second, ...rest] = answersIn(client.text())
    expect([first!.status, first!.correlationId]).toEqual([200, 'a'])
    expect(second!.status).toBe(status)
    expect(second!.head.toLowerCase()).toContain('\r\nconnection: close')
    expect(second!.head.toLowerCase()).not.toContain('access-control-')
    expect(rest).toEqual([])
  })

  itLong('are rejected after the previous answer if they time out', async () => {
    const gateway = await startTestGateway({ env: { REQUEST_TIMEOUT_MS: '1000' } })
    const history = holdHistory(gateway)
    let refused = false
    gateway.gateway.server.on('clientError', () => {
      refused = true
    })
    const client = openSocket(gateway.port, `${requestBytes('GET', '/messages', { id: 'a' })}GET /li`)
    await expect.poll(() => refused, { timeout: 10_000 }).toBe(true)
    expect(client.text()).toBe('')
    history.release()
    await expect.poll(client.isEnded).toBe(true)
    expect(answersIn(client.text()).map(({ status }) => status)).toEqual([200, 400])
  })

  test.each(['websocket', 'h2c'])(
    'are not answered if they follow an upgrade request, and the connection closes: %s',
    async (protocol) => {
      const gateway = await startTestGateway()
      const upgrade = `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`
      const client = openSocket(
        gateway.port,
        requestBytes('GET', '/messages', { id: 'a', more: upgrade }) + requestBytes('GET', '/messages', { id: 'b' }),
      )
      // The parser drops bytes after an upgrade request, so its answer must close the connection.
      await expect.poll(client.isEnded).toBe(true)
      const [answer, ...rest] = answersIn(client.text())
      expect([answer!.status, answer!.correlationId, rest.length]).toEqual([200, 'a', 0])
      expect(answer!.head.toLowerCase()).toContain('\r\nconnection: close')
    },
  )

  test('close the connection if too many are queued', async () => {
    const gateway = await startTestGateway()
    const history = holdHistory(gateway)
    const client = openSocket(gateway.port, requestBytes('GET', '/messages').repeat(200))
    await expect.poll(client.isEnded).toBe(true)
    history.release()
    expect(gateway.core.count('listVisitorMessages')).toBeLessThanOrEqual(1)
  })
})

describe('GET /events with pipelined requests', () => {
  test('waits for the previous answer', async () => {
    const gateway = await startTestGateway()
    const create = { publicSiteKey: 'pk_demo', clientInstanceId: 'i' }
    const client = openSocket(
      gateway.port,
      requestBytes('POST', '/sessions', { id: 'a', body: create }) + requestBytes(...EVENTS, { id: 'b' }),
    )
    await expect.poll(() => client.text()).toContain(': open')
    const [first, second] = answersIn(client.text())
    expect([first!.status, first!.correlationId]).toEqual([201, 'a'])
    expect([isStream(second!), second!.correlationId]).toEqual([true, 'b'])
    gateway.core.publish('message.received')
    await expect.poll(() => client.text()).toContain('id: e1-1')
  })

  test.each([
    ['a request', requestBytes('GET', '/messages', { id: 'b' })],
    ['another stream', requestBytes(...EVENTS, { id: 'b' })],
    ['broken HTTP', 'no HTTP\r\n\r\n'],
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ])('is rejected and the connection closed if %s is queued behind it', async (_name, behind) => {
    const gateway = await startTestGateway()
    const client = openSocket(gateway.port, requestBytes(...EVENTS, { id: 'a' }) + behind)
    await expect.poll(client.isEnded).toBe(true)
    const [answer, ...rest] = answersIn(client.text())
    expect(rest).toEqual([])
    expect([answer!.status, answer!.correlationId]).toEqual([400, 'a'])
    expect(JSON.parse(answer!.body)).toMatchObject({
      code: 'ValidationFailed',
      issues: [{ path: '', rule: 'pipelining' }],
    })
    expect(answer!.head.toLowerCase()).toContain('\r\nconnection: close')
    expect(gateway.core.count('listVisitorMessages')).toBe(0)
    await expect.poll(() => gateway.core.links[0]!.open.size).toBe(0)
  })

  test('is rejected if another request arrives before the core answers', async () => {
    const gateway = await startTestGateway()
    const open = gateway.core.onSubscribe
    let answer = () => {}
    gateway.core.onSubscribe = (...subscription) => {
      answer = () => open(...subscription)
    }
    const client = openSocket(gateway.port, requestBytes(...EVENTS, { id: 'a' }))
    await expect.poll(() => gateway.core.links[0]?.subscribed.length).toBe(1)
    const arrived = new Promise((resolve) => gateway.gateway.server.once('request', resolve))
    client.socket.write(requestBytes('POST', '/messages', { id: 'b', body: message() }))
    await arrived
    answer()
    await expect.poll(client.isEnded).toBe(true)
    expect(answersIn(client.text()).map(({ status, correlationId }) => [status, correlationId])).toEqual([[400, 'a']])
    expect(gateway.core.count('sendVisitorMessages')).toBe(0)
  })

  itLong('begins and stays open although an incomplete request follows it on the connection', async () => {
    const gateway = await startTestGateway({ env: { REQUEST_TIMEOUT_MS: '1000' } })
    const client = openSocket(gateway.port, `${requestBytes(...EVENTS)}GET /messages HT`)
    await expect.poll(() => client.text()).toContain(': open')
    const other = openSocket(gateway.port, 'GET /messages HT')
    await expect.poll(other.isEnded, { timeout: 10_000 }).toBe(true)
    gateway.core.publish('message.received')
    await expect.poll(() => client.text()).toContain('id: e1-1')
    expect(answersIn(client.text())).toHaveLength(1)
    expect(client.isEnded()).toBe(false)
  })

  test('never mixes up answers, for every route and every order of three requests', async () => {
    const gateway = await startTestGateway({ env: { RATE_LIMIT_FACTOR: '100000' } })
    const routes = await widgetRequests(gateway)
    expect(routes.length).toBeGreaterThan(12)
    for (const [method, path] of someOf(routes, 4)) {
      const other = (id: string) => requestBytes(method, path, { id, ...(method === 'POST' ? { body: {} } : {}) })
      const events = (id: string) => requestBytes(...EVENTS, { id })
      const orders = [
        [events, other],
        [other, events],
        [other, events, other],
        [events, other, other],
        [other, other, events],
        [events, other, events],
      ]
      for (const order of orders) {
        const sent = order.map((_, index) => `r${index}`)
        const client = openSocket(gateway.port, order.map((bytes, index) => bytes(sent[index]!)).join(''))
        await expect.poll(() => client.isEnded() || client.text().includes(': open'), { interval: 2 }).toBe(true)
        const answers = answersIn(client.text())
        const name = `${method} ${path}: ${order.map((each) => (each === events ? 'events' : 'other')).join(', ')}`
        expect(answers.length, name).toBeGreaterThan(0)
        expect(
          answers.map(({ correlationId }) => correlationId),
          name,
        ).toEqual(sent.slice(0, answers.length))
        for (const [index, answer] of answers.entries()) {
          if (isStream(answer)) expect([order[index], index], name).toEqual([events, answers.length - 1])
          else if (order[index] === events) expect(answer.status, name).toBe(400)
        }
        // A stream opens only if every other request on the connection was answered.
        if (isStream(answers.at(-1)!)) expect(answers.length, name).toBe(order.length)
        client.socket.destroy()
      }
    }
  })
})

/** Every method and path of the widget API, from its OpenAPI document. */
async function widgetRequests({ url }: TestGateway): Promise<[string, string][]> {
  const document = (await (await fetch(`${url}/docs/openapi.json`)).json()) as { paths: Record<string, object> }
  const prefix = '/api/integrations/v1/widget'
  return Object.entries(document.paths)
    .filter(([path]) => path.startsWith(prefix))
    .flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((method) => ['get', 'post', 'delete', 'put', 'patch'].includes(method))
        .map((method): [string, string] => [
          method.toUpperCase(),
          path
            .slice(prefix.length)
            .replace('{publicSiteKey}', 'pk_demo')
            .replace(/\{\w+\}/g, 'x1'),
        ]),
    )
    .filter(([, path]) => path !== '/events')
}
