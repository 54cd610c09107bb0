import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createRandom, type Random } from '../test/chaos/random.ts'
import { type FaultyProxy, startFaultyProxy } from '../test/support/faulty-proxy.ts'
import { operatorOf } from '../test/support/operator.ts'
import {
  amount,
  type Column,
  type Contender,
  compare,
  type Figures,
  type Part,
  type Running,
  scratchFolder,
  tablesOf,
} from './measure.ts'
import { installPeers, peerVersion, requirePeer, startEjabberd, startNchan } from './rivals/programs.ts'
import { pageOrigin, startService } from './service.ts'
import { quantile } from './table.ts'

/** A chat. The visitor's connections pass through the faulty proxy. */
interface Chat {
  visitorSends(text: string): unknown
  agentSends(text: string): unknown
  stop(): Promise<void>
}

type Open = (through: Through, onVisitor: (text: string) => void, onAgent: (text: string) => void) => Promise<Chat>

/** Starts the proxy before a port. Returns the port of the proxy. */
type Through = (port: number) => Promise<number>

async function repeated<T>(call: () => T): Promise<Awaited<T>> {
  for (;;) {
    try {
      return await call()
    } catch {
      await delay(200)
    }
  }
}

/** Sends texts one after another, each until it succeeds, so that none is lost and their order stays. */
function inOrder(send: (text: string) => unknown) {
  let last: Promise<unknown> = Promise.resolve()
  return (text: string) => {
    last = last.then(() => repeated(() => send(text)))
  }
}

const service = chat(
  'Service',
  'one process; the headless client of the widget. It promises each message once, in order',
  async (through, onVisitor, onAgent) => {
    const running = await startService({ layout: 'serve' })
    // The path is computed, so that the type check does not follow it: the widget is checked with the types of browsers.
    const { createServiceClient } = await import(join(import.meta.dirname, '../widget/src/client/client.ts'))
    const { ports, coreUrl, serviceToken, workspaceId, siteKey } = running.access
    const client = createServiceClient({
      siteKey,
      apiBaseUrl: `http://127.0.0.1:${await through(ports[0]!)}`,
      storage: 'memory',
      platform: {
        fetch: (url: string, init?: RequestInit) => {
          const headers = { ...Object.fromEntries(new Headers(init?.headers)), origin: pageOrigin }
          return fetch(url, { ...init, headers })
        },
      },
    })
    client.on('message.received', ({ message }: { message: { body: string } }) => onVisitor(message.body))
    await client.start()
    const { messaging, events } = operatorOf(coreUrl, serviceToken)
    const stopped = new AbortController()
    const { promise: known, resolve } = Promise.withResolvers<string>()
    const follow = async () => {
      const wanted = { workspaceId, types: ['message.visitor'] }
      for await (const page of events.followEvents(wanted, { signal: stopped.signal }))
        for (const { conversationId, message } of page.events) {
          resolve(conversationId)
          onAgent(message!.message!.body)
        }
    }
    const following = follow().catch((error: Error) => {
      if (!stopped.signal.aborted) throw error
    })
    return {
      // The client refuses a message while many wait. It is sent again later.
      visitorSends: inOrder((text) => client.sendMessage(text)),
      agentSends: inOrder(async (text) =>
        messaging.sendAgentMessage({ conversationId: await known, clientOperationId: text, body: text }),
      ),
      async stop() {
        stopped.abort()
        await following
        client.stop()
        await running.stop()
      },
    }
  },
)

const socketIo = chat(
  'Socket.IO',
  `${peerVersion('socket.io')} with connectionStateRecovery; the client with retries, ackTimeout and at most 1 s (5 by default) before it connects again. It promises at least once from the client, and at most once to it except during a recovery`,
  async (through, onVisitor, onAgent) => {
    const http = createServer().listen(0, '127.0.0.1')
    await once(http, 'listening')
    const io = new (requirePeer('socket.io').Server)(http, { connectionStateRecovery: {} })
    io.on('connection', (socket: Emitter) => {
      socket.join('chat')
      socket.on('message', (text: string, done: () => void) => {
        onAgent(text)
        done()
      })
    })
    const url = `http://127.0.0.1:${await through((http.address() as AddressInfo).port)}`
    const client = requirePeer('socket.io-client').io(url, {
      retries: 100,
      ackTimeout: 2_000,
      reconnectionDelayMax: 1_000,
    })
    client.on('message', onVisitor)
    await new Promise((resolve) => client.on('connect', resolve))
    return {
      visitorSends: (text) => client.emit('message', text, () => {}),
      agentSends: (text) => io.to('chat').emit('message', text),
      async stop() {
        client.close()
        await io.close()
      },
    }
  },
)
// biome-ignore lint/suspicious/noExplicitAny: the types of the package are not installed
type Emitter = any

const durableStreams = chat(
  'Durable Streams',
  `${peerVersion('@durable-streams/server')} with a data folder; two streams, IdempotentProducer with a fetch that repeats, live reads from the last offset. It promises each message once, in order`,
  async (through, onVisitor, onAgent) => {
    const { DurableStreamTestServer } = requirePeer('@durable-streams/server')
    const server = new DurableStreamTestServer({ host: '127.0.0.1', port: 0, dataDir: await scratchFolder('streams') })
    const direct = await server.start()
    const proxied = `http://127.0.0.1:${await through(Number(new URL(direct).port))}`
    const { DurableStream, IdempotentProducer, stream } = requirePeer('@durable-streams/client')
    const stopped = new AbortController()
    const contentType = 'application/json'
    for (const name of ['visitor', 'agent']) await DurableStream.create({ url: `${direct}/${name}`, contentType })
    const producer = (base: string, name: string) =>
      new IdempotentProducer(new DurableStream({ url: `${base}/${name}`, contentType }), name, {
        autoClaim: true,
        fetch: (...request: Parameters<typeof fetch>) => repeated(() => fetch(...request)),
      })
    async function read(url: string, onText: (text: string) => void) {
      for (let offset = '-1'; !stopped.signal.aborted; await delay(100)) {
        try {
          const found = await stream({ url, offset, live: 'sse', json: true, signal: stopped.signal })
          found.subscribeJson((batch: { items: { text: string }[]; offset: string }) => {
            for (const { text } of batch.items) onText(text)
            offset = batch.offset
          })
          await found.closed
        } catch {}
      }
    }
    void read(`${proxied}/agent`, onVisitor)
    void read(`${direct}/visitor`, onAgent)
    const [ofVisitor, ofAgent] = [producer(proxied, 'visitor'), producer(direct, 'agent')]
    return {
      visitorSends: (text) => ofVisitor.append(JSON.stringify({ text })),
      agentSends: (text) => ofAgent.append(JSON.stringify({ text })),
      async stop() {
        stopped.abort()
        await server.stop()
      },
    }
  },
)

const nchan = chat(
  'nginx with nchan',
  'its EventSource resumes by Last-Event-ID; messages of an hour are kept; a failed POST is repeated. It promises order and resumption to a subscriber',
  async (through, onVisitor, onAgent) => {
    const { server, port } = await startNchan(1_000)
    const [direct, proxied] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${await through(port)}`]
    const { EventSource } = requirePeer('eventsource')
    const sources = [new EventSource(`${proxied}/sub/agent`), new EventSource(`${direct}/sub/visitor`)]
    sources[0].onmessage = ({ data }: { data: string }) => onVisitor(data)
    sources[1].onmessage = ({ data }: { data: string }) => onAgent(data)
    await Promise.all(sources.map((source) => new Promise((resolve) => (source.onopen = resolve))))
    const poster = (url: string) =>
      inOrder(async (body) => {
        const answer = await fetch(url, { method: 'POST', body })
        await answer.text()
        if (!answer.ok) throw new Error(String(answer.status))
      })
    return {
      visitorSends: poster(`${proxied}/pub/visitor`),
      agentSends: poster(`${direct}/pub/agent`),
      async stop() {
        for (const source of sources) source.close()
        await server.stop()
      },
    }
  },
)

const ejabberd = chat(
  'ejabberd',
  `Debian's, over WebSockets, with ${peerVersion('@xmpp/client')}; stream management (XEP-0198) on both sides with resend_on_timeout; a stanza that failed is sent again. It promises at least once, in order`,
  async (through, onVisitor, onAgent) => {
    const { server, port } = await startEjabberd()
    const { client: createClient, xml } = requirePeer('@xmpp/client')
    async function connect(username: string, at: number, onText: (text: string) => void) {
      const service = `ws://127.0.0.1:${at}/ws`
      const client = createClient({ service, domain: 'localhost', resource: 'chat', username, password: 'password' })
      const to = username === 'visitor' ? 'agent@localhost' : 'visitor@localhost'
      const send = inOrder((text) => {
        // While stream management is on, the client keeps each stanza until the server has it, so an error means nothing.
        if (!client.streamManagement.enabled) throw new Error('not connected')
        void client.send(xml('message', { type: 'chat', to }, xml('body', {}, text))).catch(() => {})
      })
      client.on('error', () => {})
      client.on('online', () => void client.send(xml('presence')).catch(() => {}))
      client.on('stanza', (stanza: Emitter) => {
        const text = stanza.is('message') && stanza.attrs.type === 'chat' && stanza.getChildText('body')
        if (text) onText(text)
      })
      client.streamManagement.on('fail', (stanza: Emitter) => stanza.is('message') && send(stanza.getChildText('body')))
      await client.start()
      return { send, stop: () => client.stop() }
    }
    const visitor = await connect('visitor', await through(port), onVisitor)
    const agent = await connect('agent', port, onAgent)
    return {
      visitorSends: visitor.send,
      agentSends: agent.send,
      async stop() {
        await Promise.allSettled([visitor.stop(), agent.stop()])
        await server.stop()
      },
    }
  },
)

async function disturb(proxy: FaultyProxy, random: Random, signal: AbortSignal) {
  while (!signal.aborted) {
    await delay(random.between(300, 1_500))
    const kind = random.next()
    if (kind < 0.4) proxy.cut()
    else if (kind < 0.7) proxy.resetInAnswers(0.5)
    else proxy.slow(random.between(20, 220))
    await delay(random.between(100, 1_000))
    proxy.mend()
  }
}

function counter() {
  const seen = new Set<number>()
  const lateMs: number[] = []
  const counts = { doubled: 0, disordered: 0 }
  let newest = -1
  return {
    seen,
    arrive(text: string) {
      const [number = 0, sentAt = 0] = text.split(':').map(Number)
      if (seen.has(number)) {
        counts.doubled += 1
        return
      }
      if (number < newest) counts.disordered += 1
      newest = Math.max(newest, number)
      seen.add(number)
      lateMs.push(Date.now() - sentAt)
    },
    result: (sent: number) => ({
      ...counts,
      lost: sent - seen.size,
      median: quantile(lateMs, 0.5),
      p99: quantile(lateMs, 0.99),
    }),
  }
}

const perSecond = 4

function chat(name: string, about: string, open: Open): Contender {
  // Each round has faults of its own, which are the same for all contenders.
  let seed = 7
  return {
    name,
    about,
    async start() {
      const [visitor, agent] = [counter(), counter()]
      const random = createRandom(seed++)
      let proxy: FaultyProxy | undefined
      const opened = await open(
        async (port) => {
          proxy = await startFaultyProxy(port, random.next)
          return proxy.port
        },
        visitor.arrive,
        agent.arrive,
      )
      return {
        processes: {},
        async stop() {
          await opened.stop()
          await proxy!.close()
        },
        async work<Answer>(command: object) {
          const { messages } = command as { messages: number }
          const done = new AbortController()
          const disturbed = disturb(proxy!, random, done.signal)
          for (let number = 0; number < messages; number += 1) {
            const text = `${number}:${Date.now()}`
            opened.visitorSends(text)
            opened.agentSends(text)
            await delay(1_000 / perSecond)
          }
          done.abort()
          await disturbed
          // Waits until nothing has arrived for as long as a client may pause before it tries again.
          for (let [before, quiet] = [-1, 0]; quiet < 15; await delay(1_000)) {
            const arrived = visitor.seen.size + agent.seen.size
            quiet = arrived === 2 * messages ? 15 : arrived === before ? quiet + 1 : 0
            before = arrived
          }
          return { 'to the agent': agent.result(messages), 'to the visitor': visitor.result(messages) } as Answer
        },
      }
    },
  }
}

const columns: Column[] = [
  ['lost', 'lost', ''],
  ['doubled', 'doubled', ''],
  ['out of order', 'disordered', ''],
  ['median of the delay', 'median', 'ms'],
  ['99th percentile', 'p99', 'ms'],
]

export const part: Part = async (options) => {
  await installPeers()
  const messages = options.quick ? 200 : 1_000
  const step = {
    name: 'faults',
    title: `${amount(messages)} messages each way, ${perSecond} a second, through cuts, delays and lost answers`,
    columns,
    run: async (running: Running) => new Map(Object.entries(await running.work<Record<string, Figures>>({ messages }))),
  }
  const contenders = [service, socketIo, durableStreams, nchan, ejabberd]
  return tablesOf(await compare({ contenders, steps: [step], options, starts: 'round' }))
}
