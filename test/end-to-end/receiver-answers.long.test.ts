import { createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type DeliveryAttempt, DeliveryStatus, ResponseClass } from '#proto/lead/v1/delivery_pb.js'
import { operatorScopes, testDeliveries } from '../../core/test/deliveries.ts'
import { transportTo } from '../../core/test/transports.ts'
import { accessOf } from '../../core/transport/caller.ts'
import { createWorkspace } from '../../core/workspaces/workspaces.ts'
import { senderWith } from '../../delivery/test/test-sender.ts'
import { startWorker } from '../../delivery/test/test-worker.ts'
import { isLong } from '../support/is-long.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/until.ts'

/** What a destination sends, and how the attempts must end. */
interface Answer {
  /** Pieces of the answer. Each is written with a call of its own. */
  pieces: Buffer[]
  /** Whether the destination closes the connection after its answer. */
  isClosing: boolean
  ends: [responseClass: keyof typeof ResponseClass, requests: number]
}

const limit = 65_536
const headLimit = 16_384
const isUnderWay = (status: DeliveryStatus) => status === DeliveryStatus.PENDING || status === DeliveryStatus.SENDING
const crlf = '\r\n'
const hex = (value: number) => value.toString(16)
const filler = (length: number) => 'x'.repeat(length)

const field = fc
  .tuple(fc.stringMatching(/^x-[a-z]{1,8}$/), fc.stringMatching(/^[ -~]{0,40}$/))
  .map(([n, v]) => `${n}: ${v}`)
const fields = fc.array(field, { maxLength: 3 }).map((lines) => lines.map((line) => line + crlf).join(''))
const extension = fc.stringMatching(/^(;[a-z]{1,6}(=([a-z]{1,6}|"[a-z ]{0,9}"))?){0,3}$/)

/** Interim answers, asked for or not. */
const interims = fc
  .array(fc.tuple(fc.constantFrom('100 Continue', '102 Processing', '103 Early Hints', '199 Odd'), fields), {
    maxLength: 4,
  })
  .map((all) => all.map(([status, lines]) => `HTTP/1.1 ${status}${crlf}${lines}${crlf}`).join(''))

const statuses: [number, Answer['ends']][] = [
  [200, ['ACCEPTED', 1]],
  [202, ['ACCEPTED', 1]],
  [299, ['ACCEPTED', 1]],
  [302, ['REDIRECTED', 1]],
  [409, ['CONFLICT', 1]],
  [418, ['REJECTED', 1]],
  [422, ['REJECTED_PAYLOAD', 1]],
  [429, ['RATE_LIMITED', 9]],
  [500, ['SERVER_ERROR', 9]],
]
const status = fc.constantFrom(...statuses)
const unreadable: Answer['ends'] = ['UNREADABLE_ANSWER', 3]
const tooLarge: Answer['ends'] = ['REJECTED', 1]
const lost: Answer['ends'] = ['NETWORK_ERROR', 9]

const chunks = (parts: [string, string][], trailers = '') =>
  `${parts.map(([body, ext]) => `${hex(body.length)}${ext}${crlf}${body}${crlf}`).join('')}0${crlf}${trailers}${crlf}`
const chunkedHead = (code: number) => `HTTP/1.1 ${code} Text${crlf}Transfer-Encoding: chunked${crlf}`

/** An answer as a text, with how its attempts end. */
type Case = [text: string, ends: Answer['ends'], isClosing?: boolean]

const readable: fc.Arbitrary<Case> = fc.oneof(
  // With a length, which also covers a body that is longer than its length says.
  fc
    .tuple(status, fields, fc.nat(900), fc.constantFrom(0, 0, 1, 20))
    .map(
      ([[code, ends], lines, length, more]): Case => [
        `HTTP/1.1 ${code} Text${crlf}${lines}content-length: ${length}${crlf}${crlf}${filler(length + more)}`,
        ends,
      ],
    ),
  // Chunks with extensions and trailers.
  fc
    .tuple(status, fields, fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,90}$/), extension), { maxLength: 5 }), fields)
    .map(
      ([[code, ends], lines, parts, trailers]): Case => [
        `${chunkedHead(code)}${lines}${crlf}${chunks(parts, trailers)}`,
        ends,
      ],
    ),
  // Until the connection closes.
  fc
    .tuple(status, fc.constantFrom('1.0', '1.1'), fields, fc.nat(900))
    .map(
      ([[code, ends], version, lines, length]): Case => [
        `HTTP/${version} ${code} Text${crlf}${lines}${crlf}${filler(length)}`,
        ends,
        true,
      ],
    ),
  // An answer that has no body gets one, or is sent twice.
  fc
    .constantFrom(filler(30), `HTTP/1.1 200 OK${crlf}content-length: 0${crlf}${crlf}`, crlf, '')
    .map((more): Case => [`HTTP/1.1 204 No Content${crlf}${crlf}${more}`, ['ACCEPTED', 1]]),
  // As long as is allowed, in all.
  status.map(([code, ends]): Case => {
    const head = `HTTP/1.1 ${code} Text${crlf}content-length: 64000${crlf}${crlf}`
    return [head + filler(64_000), ends]
  }),
)

const cutOff: fc.Arbitrary<Case> = fc
  .constantFrom(
    '',
    'HTTP',
    `HTTP/1.1 200 OK${crlf}content-le`,
    `HTTP/1.1 200 OK${crlf}content-length: 10${crlf}${crlf}12345`,
    `${chunkedHead(200)}${crlf}5${crlf}12`,
    `${chunkedHead(200)}${crlf}5${crlf}12345${crlf}`,
    `HTTP/1.1 103 Early Hints${crlf}${crlf}`,
  )
  .map((text): Case => [text, lost, true])

const broken: fc.Arbitrary<Case> = fc
  .oneof(
    fc.constantFrom(
      'SSH-2.0-OpenSSH_9.2p1\r\n',
      '220 mail.example ESMTP\r\n',
      '\0\x01\x02\x03\xff\xfe',
      '{"received":true}\n',
      '<html></html>',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'HTTP/1.1 200 OK\ncontent-length: 0\n\n',
      'HTTP/1.1 200 OK\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx-a: b\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 0\n\r\n',
      'HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx a: b\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx-a: b\0\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nx-a\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 999 Beyond\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 099 Below\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 20 Short\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 OK\r\n\r\n',
      'HTTP/3.7 200 OK\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes of x',
      'HTTP/1.1 101 Switching Protocols\r\n\r\n',
      `${chunkedHead(200)}\r\nzz\r\nxx\r\n`,
      `${chunkedHead(200)}\r\n-2\r\nxx\r\n`,
      `${chunkedHead(200)}\r\n2\r\nxxx\r\n0\r\n\r\n`,
      `${chunkedHead(200)}\r\n2\nxx\r\n0\r\n\r\n`,
      `${chunkedHead(200)}\r\nffffffffffffffffff\r\nx`,
    ),
    fc.uint8Array({ minLength: 1 }).map((bytes) => `\x16${String.fromCharCode(...bytes)}`),
    // A head of more than 16 KiB, up to the limit of the whole answer.
    fc
      .integer({ min: headLimit + 1, max: 60_000 })
      .map((size) => `HTTP/1.1 200 OK\r\nx-large: ${filler(size)}\r\ncontent-length: 0\r\n\r\n`),
    fc
      .integer({ min: 180, max: 600 })
      .map((lines) => `HTTP/1.1 200 OK\r\n${`x-many: ${filler(90)}\r\n`.repeat(lines)}content-length: 0\r\n\r\n`),
  )
  .map((text): Case => [text, unreadable])

/** More than 64 KiB, whatever they are. */
const large: fc.Arbitrary<Case> = fc
  .tuple(fc.integer({ min: limit, max: 4 * limit }), status)
  .chain(([size, [code]]) => {
    const many = (part: string) => part.repeat(Math.ceil(size / part.length) + 1)
    return fc.constantFrom(
      many(`HTTP/1.1 100 Continue${crlf}${crlf}`),
      many(`HTTP/1.1 103 Early Hints${crlf}link: <a>${crlf}${crlf}`),
      `HTTP/1.1 103 Early Hints${crlf}${many(`x-a: ${filler(90)}${crlf}`)}${crlf}`,
      `HTTP/1.1 ${code} Text${crlf}${many(`x-a: ${filler(90)}${crlf}`)}${crlf}`,
      `HTTP/1.1 ${code} Text${crlf}x-a: ${filler(size)}`,
      `HTTP/1.1 ${code} Text${crlf}content-length: ${size}${crlf}${crlf}${filler(size)}`,
      `${chunkedHead(code)}${crlf}${many(`1;ext=${filler(90)}${crlf}x${crlf}`)}`,
      `${chunkedHead(code)}${crlf}1;ext=${filler(size)}`,
      `${chunkedHead(code)}${crlf}${hex(size)}${crlf}${filler(size)}`,
      `${chunkedHead(code)}${crlf}0${crlf}${many(`x-a: ${filler(90)}${crlf}`)}`,
      `${chunkedHead(code)}${crlf}0${crlf}x-a: ${filler(size)}`,
      `HTTP/1.0 ${code} Text${crlf}${crlf}${filler(size)}`,
    )
  })
  .map((text): Case => [text, tooLarge])

/** Cuts a text into pieces, as a network does. */
const cut = (text: string) =>
  fc.array(fc.nat(Math.max(0, Math.min(text.length, 2_000))), { maxLength: 4 }).map((places) => {
    const at = [0, ...places.toSorted((one, other) => one - other), text.length]
    return at
      .slice(1)
      .flatMap((end, index) => (end > at[index]! ? Buffer.from(text.slice(at[index], end), 'latin1') : []))
  })

const answer = fc
  .tuple(interims, fc.oneof(readable, cutOff, broken, large))
  .chain(([before, [text, ends, isClosing = false]]) =>
    cut(before + text).map((pieces): Answer => ({ pieces, isClosing, ends })),
  )

const test = testDeliveries({ settings: { DELIVERY_ATTEMPT_DEADLINE_MS: 60_000 }, count: 1 })
const answers = fc.sample(answer, isLong ? 2_000 : 50)
/** Number of attempts that are awaited. */
const rounds = isLong ? 9 : 4
/** Number of requests for each answer. */
const requests = answers.map(() => 0)
const sockets = new Set<Socket>()
let destinationUrl: string

/** Sends the answer whose index the lead has as its name. */
const receiver = createServer({ noDelay: true }, (socket) => {
  let text = ''
  sockets.add(socket)
  socket.setEncoding('latin1').on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
  socket.on('data', async (chunk) => {
    text += chunk
    const index = Number(/"name":"answer (\d+)"\}\}$/.exec(text)?.[1] ?? -1)
    if (index < 0) return
    text = ''
    requests[index]! += 1
    const { pieces, isClosing } = answers[index]!
    for (const piece of pieces) {
      if (!socket.destroyed) socket.write(piece)
      await delay(0)
    }
    if (isClosing) socket.end()
  })
})

beforeAll(async () => {
  destinationUrl = `${(await listen(receiver)).url}/`
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
})

it('each answer of a destination has its response class and its number of requests', async () => {
  const core = test.cores[0]!
  const { workspaceId } = await createWorkspace(core, 'Shop')
  const operator = await test.client(core, operatorScopes, workspaceId)
  const { subscriptionId } = await operator.createSubscription({ destinationUrl, mappedFields: ['name'] })
  // Without idle connections, bytes that follow a complete answer cannot meet another request.
  const sender = senderWith({ maxIdle: 0 })
  const token = await accessOf(core).issue({ subject: 'worker', scopes: ['deliveries:work'] })
  startWorker({ cores: [transportTo(core)], token, sender })
  const ids: string[] = []
  const request = async (index: number) => {
    const { leadId } = await operator.captureLead({ source: 'test', fields: { name: `answer ${index}` } })
    const { attempt } = await operator.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: leadId })
    ids[index] = attempt!.deliveryId
  }
  // In groups, because 2,000 calls at once exceed what a busy database answers in time.
  for (let start = 0; start < answers.length; start += 100)
    await Promise.all(answers.slice(start, start + 100).map((_, index) => request(start + index)))
  const ended: DeliveryAttempt[] = ids.map(() => ({}) as DeliveryAttempt)
  for (let [open, round] = [ids, 1]; open.length > 0 && round <= rounds; round += 1) {
    const waiting = new Set(open)
    const last: DeliveryAttempt[] = []
    const look = async (deliveryId: string) => {
      const latest = (await operator.listDeliveryAttempts({ deliveryId })).attempts.at(-1)!
      if (latest.attemptNumber >= round && !isUnderWay(latest.status) && waiting.delete(deliveryId)) last.push(latest)
    }
    // Each call asks about what is under way, so that the wait does not delay the attempts.
    const lookAtSome = () => Promise.all([...waiting].slice(0, 100).map(look))
    // On a busy machine, due repeats of other deliveries delay first attempts.
    const made = () => requests.reduce((sum, count) => sum + count)
    for (let [left, before] = [waiting.size, made()]; left > 0; [left, before] = [waiting.size, made()]) {
      const hasMoved = async () => (await lookAtSome()) && (waiting.size < left || made() > before)
      await until(`attempt ${round} of ${left} to end`, hasMoved, 20)
    }
    for (const attempt of last) ended[ids.indexOf(attempt.deliveryId)] = attempt
    const retried = last.filter(({ nextRetryAt }) => nextRetryAt)
    open = retried.map(({ deliveryId }) => deliveryId)
    const dueAt = Math.max(...retried.map(({ nextRetryAt }) => Number(nextRetryAt!.seconds) + 1))
    if (open.length === 0 || round === rounds) break
    // On a busy machine, first repeats begin before. The step of the clock would end their leases.
    await until('no attempt to be under way', async () => {
      const soon = { $lte: new Date(test.now() + 1_000) }
      return (await core.db.deliveries.countDocuments({ $or: [{ status: 'sending' }, { dueAt: soon }] })) === 0
    })
    test.advance(Math.max(0, dueAt * 1000 - test.now()))
  }
  for (const [index, { ends, pieces }] of answers.entries()) {
    const [responseClass, count] = ends
    const found = [ResponseClass[ended[index]!.responseClass], requests[index]]
    expect
      .soft(found, JSON.stringify(String(Buffer.concat(pieces)).slice(0, 300)))
      .toEqual([responseClass, Math.min(count, rounds)])
  }
})
