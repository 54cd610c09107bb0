import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../../test/support/listen.ts'
import { until } from '../../test/support/until.ts'
import { signWorkspaceSession } from '../../test/support/workspace-session.ts'
import { startTestGateway } from '../test/test-gateway.ts'
import { answersIn, openSocket } from '../test/test-socket.ts'

const MESSAGING = '/rpc/service.messaging.v1.MessagingService'
const WATCH = `${MESSAGING}/WatchConversations`
const LIST = `${MESSAGING}/ListConversations`
const SEND = `${MESSAGING}/SendAgentMessage`
let session: string

beforeAll(async () => {
  session = await signWorkspaceSession({ claims: { scope: 'messages:read messages:write' } })
})

/** Starts an HTTP server in place of a core. The listener answers every call. */
async function startBareCore(listener: RequestListener) {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(`${request.method} ${request.url}`)
    response.on('error', () => {})
    listener(request, response)
  })
  return { url: (await listen(server)).url, paths }
}

async function start(...listeners: RequestListener[]) {
  const cores = await Promise.all(listeners.map(startBareCore))
  const { port, lines } = await startTestGateway({ env: { CORE_URLS: cores.map(({ url }) => url).join(',') } })
  const send = (target: string, { head = '', body = '{}', type = 'application/json' } = {}) =>
    openSocket(
      port,
      `POST ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${session}\r\nContent-Type: ${type}\r\n` +
        `${head || `Content-Length: ${body.length}\r\n`}\r\n${body}`,
    )
  return { cores, core: cores[0]!, lines, send }
}

const answerEmpty: RequestListener = (request, response) => {
  request.resume().once('end', () => response.setHeader('content-type', 'application/json').end('{}'))
}

const frame = (json: string) => `\0${String.fromCharCode(0, 0, 0, json.length)}${json}`

/** Begins a stream with these bytes and keeps it open. */
function beginStream(_request: IncomingMessage, response: ServerResponse, bytes = frame('{"ready":{}}')): void {
  response.setHeader('content-type', 'application/connect+json').write(bytes)
}

const streamCall = { type: 'application/connect+json', body: frame('{}') }

describe('/rpc streams', () => {
  test.each([
    ['resets the connection', 'resetAndDestroy'],
    ['closes the connection', 'destroy'],
    ['ends its side and keeps the other open', 'end'],
  ] as const)('end the call to the core when the client %s', async (_, leave) => {
    let isOpen = true
    const { send } = await start((request, response) => {
      beginStream(request, response)
      response.once('close', () => {
        isOpen = false
      })
    })
    const client = send(WATCH, streamCall)
    await until('the first message', () => client.text().includes('ready'))
    client.socket[leave]()
    await until('the call of the core to end', () => !isOpen)
  })

  test('end without an end frame when the core dies within a message', async () => {
    const begun = Promise.withResolvers<ServerResponse>()
    const { send } = await start((request, response) => {
      beginStream(request, response, frame('{"ready":{}}') + frame('{"heartbeat":{}}').slice(0, 9))
      begun.resolve(response)
    })
    const client = send(WATCH, streamCall)
    await until('the first message', () => client.text().includes('ready'))
    ;(await begun.promise).destroy()
    await until('the end of the stream', () => client.isEnded())
    expect(client.text()).not.toContain('unavailable')
    expect(client.text().endsWith('0\r\n\r\n')).toBe(false)
  })

  test('buffer few bytes for a client that does not read', async () => {
    let written = 0
    const block = Buffer.alloc(64 * 1024)
    block.writeUInt32BE(block.length - 5, 1)
    const { send } = await start((_request, response) => {
      response.setHeader('content-type', 'application/connect+json')
      const write = () => {
        if (response.destroyed) return
        written += block.length
        if (response.write(block)) setImmediate(write)
        else response.once('drain', write)
      }
      write()
    })
    const client = send(WATCH, streamCall)
    client.socket.pause()
    let before = -1
    let stillFor = 0
    await until('the core to be stopped', () => {
      stillFor = written === before ? stillFor + 1 : 0
      before = written
      return stillFor === 20
    })
    expect(written).toBeLessThan(16 * 1024 * 1024)
  })
})

describe('/rpc calls', () => {
  test('are cancelled at the core when the client leaves before the answer', async () => {
    let state = 'none'
    const { send, core } = await start((_request, response) => {
      state = 'open'
      response.once('close', () => {
        state = 'closed'
      })
    })
    const client = send(SEND)
    await until('the call', () => state === 'open')
    client.socket.destroy()
    await until('the call of the core to end', () => state === 'closed')
    expect(core.paths).toHaveLength(1)
  })

  test('accept a chunked body and reject one above the limit', async () => {
    const { send, core } = await start(answerEmpty)
    const head = 'Transfer-Encoding: chunked\r\n'
    const small = send(SEND, { head, body: '1\r\n{\r\n1\r\n}\r\n0\r\n\r\n' })
    await until('the answer', () => answersIn(small.text())[0]?.status === 200)
    const block = 'x'.repeat(0x4000)
    const large = send(SEND, { head, body: `${`4000\r\n${block}\r\n`.repeat(5)}0\r\n\r\n` })
    await until('the refusal', () => answersIn(large.text())[0]?.status === 429)
    expect(core.paths).toHaveLength(1)
  })

  test('leave the connection of the client open for its next call', async () => {
    const { send } = await start(answerEmpty)
    const client = send(LIST)
    await until('the first answer', () => answersIn(client.text()).length === 1)
    client.socket.write(
      `POST ${LIST} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${session}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
    )
    await until('the second answer', () => answersIn(client.text()).length === 2)
  })

  test('are sent to the other core while one core resets all connections', async () => {
    const { send, cores } = await start((request) => request.socket.resetAndDestroy(), answerEmpty)
    for (let n = 0; n < 6; n += 1) {
      const client = send(LIST)
      await until('the answer', () => answersIn(client.text())[0]?.status === 200)
    }
    expect(cores[1]!.paths).toHaveLength(6)
  })

  test('reach only the method that the path names after decoding', async () => {
    const { send, core } = await start(answerEmpty)
    const refused: [string, number][] = [
      ['/rpc/../v1', 501],
      ['/rpc/%2e%2e/livez', 501],
      ['/rpc/..%2f..%2flivez/x', 501],
      [`${MESSAGING}%2fSendAgentMessage`, 501],
      [`${MESSAGING}/..%2fSendAgentMessage`, 501],
      [`${SEND}%00`, 501],
      [`${SEND}/`, 501],
      [`${SEND};x=1`, 501],
      [SEND.replace('/rpc', '/rpc/'), 501],
      [`/rpc${SEND.slice(4).replaceAll('/', '\\')}`, 404],
      [`${MESSAGING}/%ff`, 400],
    ]
    for (const [target, status] of refused) {
      const client = send(target)
      const answer = await until('the refusal', () => answersIn(client.text())[0])
      expect([target, answer.status]).toEqual([target, status])
    }
    expect(core.paths).toEqual([])

    const accepted = [`/%72pc/${SEND.slice(5, -7)}%4dessage`, `${SEND}?x=../../y#z`, `http://evil.example${SEND}`]
    for (const target of accepted) {
      const client = send(target)
      const answer = await until('the answer', () => answersIn(client.text())[0])
      expect([target, answer.status]).toEqual([target, 200])
    }
    expect(core.paths).toEqual(accepted.map(() => `POST ${SEND.slice(4)}`))
  })
})
