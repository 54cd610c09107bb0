import { lookup } from 'node:dns/promises'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { describe, expect, it } from 'vitest'
import { examine, type Finding } from '../../admin/doctor/doctor.ts'
import { adminHere } from '../support/admin.ts'
import { testCertificates } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { listen } from '../support/listen.ts'
import { useLocalStack } from '../support/local-stack.ts'

// The proxies here are the peer 127.0.0.1.
const stack = useLocalStack({ env: { TRUST_PROXY: '127.0.0.1/32', HEARTBEAT_SECONDS: '1' } })

type Pass = (asked: IncomingMessage, answered: ServerResponse, to: (changed?: Record<string, string>) => void) => void
type Change = (answer: IncomingMessage, answered: ServerResponse) => void

const pipeAnswer: Change = (answer, answered) => {
  answered.writeHead(answer.statusCode!, answer.headers)
  answer.pipe(answered)
}

/** Starts a proxy before the gateway. It keeps `Host`, and passes everything on unless told otherwise. */
async function startProxy({ pass, change = pipeAnswer }: { pass?: Pass; change?: Change } = {}): Promise<URL> {
  const target = new URL(stack.gateways[0]!.url)
  const proxy = createServer((asked, answered) => {
    const to = (changed: Record<string, string> = {}) => {
      const options = { port: target.port, host: target.hostname, method: asked.method, path: asked.url }
      const onward = httpRequest({ ...options, headers: { ...asked.headers, ...changed } }, (answer) => {
        change(answer, answered)
      })
      onward.on('error', () => answered.destroy())
      answered.on('close', () => onward.destroy())
      asked.pipe(onward)
    }
    if (pass) pass(asked, answered, to)
    else to()
  })
  return new URL((await listen(proxy)).url)
}

interface Options {
  siteKey?: string
  origin?: string
  openMs?: number
}

async function findingsOf(
  url: URL,
  { siteKey = stack.demo.siteKey, origin = stack.demo.origin, openMs = 2_500 }: Options = {},
) {
  const found: Finding[] = []
  for await (const each of examine(url, siteKey, origin, openMs)) found.push(each)
  const texts = (isFault: boolean) => found.filter((each) => each.isFault === isFault).map(({ text }) => text)
  return { faults: texts(true), fine: texts(false) }
}

const isStream = ({ headers }: IncomingMessage) => `${headers['content-type']}`.startsWith('text/event-stream')

const localhost = await lookup('localhost', { all: true })

describe('the doctor', () => {
  it('finds no fault behind a proxy that passes everything on, and leaves no session behind', async () => {
    const answers: string[] = []
    const change: Change = (answer, answered) => {
      answers.push(`${answer.statusCode} ${new URL(answered.req.url!, 'http://chat.example').pathname}`)
      pipeAnswer(answer, answered)
    }
    const { faults, fine } = await findingsOf(await startProxy({ change }))
    expect(faults).toEqual([])
    expect(fine).toEqual([
      expect.stringMatching(/^127\.0\.0\.1 resolves to/),
      expect.stringMatching(/accepts connections on port/),
      'the configuration is readable',
      expect.stringMatching(/^the clocks differ by \d+ s$/),
      `pages of ${stack.demo.origin} may read answers`,
      'browsers may send messages',
      'the gateway gets the public host',
      'events arrive when they are sent',
      expect.stringMatching(/^the event stream stayed open for \d+ s$/),
    ])
    expect(answers.at(-1)).toBe('200 /api/integrations/v1/widget/sessions/close')
  })

  it.each<[string, { pass?: Pass; change?: Change }, RegExp]>([
    [
      'buffers the event stream',
      { change: (answer, answered) => (isStream(answer) ? answer.resume() : pipeAnswer(answer, answered)) },
      /sent nothing for 5 s: turn response buffering off/,
    ],
    [
      'ends the event stream too early',
      {
        change(answer, answered) {
          pipeAnswer(answer, answered)
          if (isStream(answer)) answer.once('data', () => setTimeout(() => answered.destroy(), 200))
        },
      },
      /ended after 0 s: set the proxy’s read timeout/,
    ],
    [
      'claims to compress the event stream',
      {
        change(answer, answered) {
          if (isStream(answer)) answer.headers['content-encoding'] = 'identity'
          pipeAnswer(answer, answered)
        },
      },
      /compresses the event stream/,
    ],
    [
      'replaces the host',
      { pass: (_asked, _answered, to) => to({ host: 'gateway.internal:8080' }) },
      /does not know that its public host is 127/,
    ],
    [
      'adds CORS headers of its own',
      {
        change(answer, answered) {
          if (answer.headers['access-control-allow-origin']) answer.headers['access-control-allow-origin'] = '*'
          pipeAnswer(answer, answered)
        },
      },
      /must be http.*and the answer has "\*"/,
    ],
    [
      'answers OPTIONS itself',
      {
        pass: (asked, answered, to) => (asked.method === 'OPTIONS' ? void answered.writeHead(405).end() : to()),
      },
      /\(OPTIONS\) got status 405/,
    ],
    [
      'has a clock that is an hour off',
      {
        change(answer, answered) {
          answer.headers.date = new Date(Date.now() + 3_600_000).toUTCString()
          pipeAnswer(answer, answered)
        },
      },
      /differ by 3(599|600|601) s/,
    ],
    [
      'has a page for every address',
      { pass: (_asked, answered) => void answered.end('<!doctype html><title>Shop</title>') },
      /status 200 without an error of the gateway: the proxy answers itself/,
    ],
    ['answers nothing', { pass: (asked) => void asked.socket.destroy() }, /no answer: .*Check the proxy/],
  ])('names the fault of a proxy that %s', async (_, proxy, expected) => {
    const { faults } = await findingsOf(await startProxy(proxy))
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(expected)
  })

  it('names the error and the remedy when the gateway refuses', async () => {
    const url = await startProxy()
    expect((await findingsOf(url, { siteKey: 'pk_unknown' })).faults[0]).toMatch(/refused: InstallationNotFound\. \w+/)
    expect((await findingsOf(url, { origin: 'https://other.example' })).faults[0]).toMatch(/refused: OriginNotAllowed/)
  })

  it('names the address to which it cannot connect, and a host without an address', async () => {
    const closed = await findingsOf(new URL(`http://127.0.0.1:${await freePort()}`))
    expect(closed.faults[0]).toMatch(/nothing listens there/)
    const unknown = await findingsOf(new URL('https://chat.invalid'))
    expect(unknown).toEqual({ faults: [expect.stringMatching(/^chat\.invalid does not resolve/)], fine: [] })
  })

  it.skipIf(localhost.length < 2)('finds no fault if a local server listens on one address of localhost', async () => {
    const { port } = await startProxy()
    const { faults, fine } = await findingsOf(new URL(`http://localhost:${port}`))
    expect(faults).toEqual([])
    expect(fine).toContain('nothing listens on ::1; browsers use the other address')
  })

  it('names a certificate that browsers do not trust', async () => {
    const server = createTlsServer(testCertificates.good, (_, answered) => answered.end())
    const { port } = await listen(server)
    const { faults } = await findingsOf(new URL(`https://127.0.0.1:${port}`))
    expect(faults[0]).toMatch(/browsers do not trust the certificate/)
  })

  it('is a command that needs no token, and fails if there is a fault', async () => {
    const flags = (port: number) => [
      ...['doctor', '--gateway', `http://127.0.0.1:${port}`],
      ...['--site-key', 'pk_1', '--origin', 'https://shop.example'],
    ]
    const { code, stdout, stderr } = await adminHere(flags(await freePort()), { DATA_DIR: '/nonexistent' })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ok {5}127\.0\.0\.1 resolves[\s\S]*FAULT {2}127\.0\.0\.1, port \d+: nothing listens there/)
    expect(stderr).toBe('admin: 1 fault\n')
    const wrong = await adminHere(
      ['doctor', '--gateway', 'chat', '--site-key', 'a', '--origin', 'https://a.example'],
      {},
    )
    expect(wrong).toMatchObject({ code: 2, stderr: 'admin: --gateway must be a URL, like https://chat.example\n' })
  })
})
