import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { SITE } from '../test/test-core.ts'
import { message, startTestGateway } from '../test/test-gateway.ts'
import { openSocket } from '../test/test-socket.ts'

const PREFIX = '/api/integrations/v1/widget'

describe('stopping gateway', () => {
  test.each([
    ['carries out', 'a message', 202, `POST ${PREFIX}/messages`],
    ['refuses', 'an event stream', 503, `GET ${PREFIX}/events`],
    ['refuses', 'a call of a service', 503, 'POST /rpc/service.lead.v1.LeadService/ListLeads'],
    ['refuses', 'a readiness probe', 503, 'GET /readyz'],
  ])('%s %s that arrives on a connection that was accepted before', async (_name, _what, status, line) => {
    const { port, gateway } = await startTestGateway()
    const { socket, closed: answered } = openSocket(port, '', { allowHalfOpen: false })
    await once(gateway.server, 'connection')
    const body = line.startsWith('POST') ? JSON.stringify(message('op-1')) : ''
    const lines = {
      ...{ host: 'x', origin: SITE, 'x-service-widget-version': '1.0', authorization: 'Bearer grant-1' },
      ...{ 'content-type': 'application/json', 'content-length': String(body.length), 'idempotency-key': 'op-1' },
    }
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
    const closed = gateway.close()
    await expect.poll(() => gateway.server.listening).toBe(false)
    socket.write(`${line} HTTP/1.1\r\n${head.join('')}\r\n${body}`)
    const answer = await answered
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    await closed
  })

  test.each([
    ['taken', { 'idempotency-key': 'op-1' }, 202],
    ['refused', {}, 400],
  ])('answers pending requests and closes their connections: %s', async (_name, headers, status) => {
    const { port, gateway } = await startTestGateway()
    const body = JSON.stringify(message('op-1'))
    const { socket, closed: answered } = openSocket(port, '', { allowHalfOpen: false })
    const lines = {
      ...{ host: 'x', origin: SITE, 'x-service-widget-version': '1.0', authorization: 'Bearer grant-1' },
      ...{ 'content-type': 'application/json', 'content-length': String(body.length), ...headers },
    }
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`POST ${PREFIX}/messages HTTP/1.1\r\n${head.join('')}\r\n${body.slice(0, 5)}`)
    await once(gateway.server, 'request')
    const closed = gateway.close()
    await new Promise((resolve) => setImmediate(resolve))
    socket.write(body.slice(5))
    const answer = await answered
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer.toLowerCase()).toContain('\r\nconnection: close\r\n')
    await closed
  })
})
