import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { widgetLanguages } from '../../contract/widget-locales.ts'
import { listen } from '../../test/support/listen.ts'
import { builtFile } from './built-files.ts'
import type { ScenarioConversation } from './scenario-conversation.ts'
import { createScenarioFeatures } from './scenario-features.ts'
import { answer, readBytes, refuse, type SeenRequest } from './scenario-http.ts'
import { createScenarioSessions, endOf, grantSession, type Session, type Site, spend } from './scenario-sessions.ts'
import type { Refusal, Scenario, SiteKey } from './scenarios.ts'

const base = '/api/integrations/v1/widget'
const corsRequestHeaders =
  'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Service-Widget-Version, X-Correlation-Id, traceparent, tracestate, baggage, sentry-trace, newrelic, x-datadog-origin, x-datadog-parent-id, x-datadog-sampling-priority, x-datadog-sampled, x-datadog-trace-id'

interface ScenarioServerOptions {
  /** Returns the time at which grants are issued, in milliseconds since the epoch. */
  now?: () => number
  /** Interval of heartbeats in milliseconds. If undefined, tests call `heartbeat`. */
  heartbeatMs?: number
  /** Replaces fields of the configuration for every site key. */
  config?: Record<string, unknown>
  appearance?: { title?: string; greeting?: string; accentColor?: string; position?: 'left' | 'right' }
}

export type ScenarioServer = Awaited<ReturnType<typeof startScenarioServer>>

/**
 * Starts a fake gateway with the Widget API on a free loopback port. The site key selects how the
 * server violates the contract (`scenarios.ts`). All data is in memory.
 */
export async function startScenarioServer(options: ScenarioServerOptions = {}) {
  const now = options.now ?? Date.now
  const requests: SeenRequest[] = []
  const { sites, siteOf, ...sessions } = createScenarioSessions(now)
  const features = createScenarioFeatures(now)
  const stalled: (() => void)[] = []
  let counter = 0
  let refusesOrigin = false

  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })
  const { url, close } = await listen(server)
  const beating = options.heartbeatMs ? setInterval(heartbeat, options.heartbeatMs) : undefined

  return {
    url,
    requests,
    heartbeat,
    features,

    /** Returns the received requests of a route, such as `POST /messages`. */
    seen: (route: string) => requests.filter(({ method, path }) => `${method} ${path}` === route),

    /** Returns the newest conversation of a site key. */
    conversation: (siteKey: SiteKey) => [...(sites.get(siteKey)?.sessions.values() ?? [])].at(-1)!.conversation,

    /** Sets further violations of the contract for a site key. */
    set: (siteKey: SiteKey, change: Scenario) => void Object.assign(siteOf(siteKey)!.left, change),

    sessionCount: (siteKey: SiteKey) => sites.get(siteKey)?.sessions.size ?? 0,

    /** New sessions continue the newest conversation of their site key, as for a verified visitor's second device. */
    continueConversations: sessions.continueConversations,

    /** Rejects or accepts the page's origin from now on. Rejections have no CORS headers. */
    refuseOrigin(isRefused: boolean) {
      refusesOrigin = isRefused
    },

    /** Ends all sessions of a site key. Their streams get the event, and their later calls get the refusal. */
    endSessions(siteKey: SiteKey, event: string, refusal: Refusal) {
      for (const session of sites.get(siteKey)?.sessions.values() ?? []) {
        sessions.endSession(session, event, refusal)
      }
    },

    async close() {
      clearInterval(beating)
      await close()
    },
  }

  function heartbeat() {
    for (const { sessions } of sites.values())
      for (const { conversation } of sessions.values()) conversation.heartbeat()
  }

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (refusesOrigin && url.pathname.startsWith(base))
      return refuse(response, { status: 403, code: 'OriginNotAllowed', terminal: true })
    response.setHeader('Access-Control-Allow-Origin', request.headers.origin ?? 'null')
    response.setHeader('Access-Control-Expose-Headers', 'X-Correlation-Id, Retry-After, Idempotency-Replayed')
    response.setHeader('Vary', 'Origin, X-Correlation-Id')
    response.setHeader('X-Correlation-Id', `cor_${++counter}`)
    if (request.method === 'OPTIONS') {
      response.setHeader('Access-Control-Allow-Headers', corsRequestHeaders)
      response.setHeader('Access-Control-Allow-Methods', 'GET, POST, DELETE')
      response.setHeader('Access-Control-Max-Age', '7200')
      return response.writeHead(204).end()
    }
    const file = await builtFile(url.pathname)
    if (file) return response.writeHead(200, { 'Content-Type': 'text/javascript; charset=utf-8' }).end(file)
    const bytes = await readBytes(request)
    const isJson = request.headers['content-type'] === 'application/json'
    if (url.pathname === '/control') {
      return answer(response, 200, { result: control(JSON.parse(bytes.toString())) ?? null })
    }
    const text = isJson ? bytes.toString() : ''
    const path = url.pathname.slice(base.length)
    const body = text === '' ? undefined : (JSON.parse(text) as Record<string, unknown>)
    const query = Object.fromEntries(url.searchParams)
    const seen = { method: request.method ?? 'GET', path, query, headers: request.headers, body, bytes }
    requests.push(seen)
    if (!request.headers.origin) return refuse(response, { status: 403, code: 'OriginNotAllowed', terminal: true })
    if (request.headers['x-service-widget-version'] !== '1.0') {
      return refuse(response, { status: 400, code: 'WidgetVersionUnsupported', terminal: true })
    }
    if (path.startsWith('/config/')) return config(response, path.slice('/config/'.length))
    if (path === '/sessions') return sessions.createSession(response, seen, text)

    const grant = request.headers.authorization?.replace('Bearer ', '')
    const found = [...sites.values()].flatMap((site) =>
      [...site.sessions.values()].flatMap((session) =>
        grantSession(grant) === session.content.sessionId ? { site, session } : [],
      ),
    )[0]
    if (!found) return refuse(response, { status: 401, code: 'GrantInvalid', terminal: true })
    const { site, session } = found
    const route = `${seen.method} ${path}`
    if (!session.ended && path !== '/sessions/renew' && now() >= endOf(grant))
      return refuse(response, { status: 401, code: 'GrantExpired' })
    if (!session.ended && now() >= Date.parse(session.content.renewableUntil!))
      return refuse(response, { status: 401, code: 'SessionExpired', terminal: true })
    if (path === '/sessions/identify') return sessions.identify(response, site, session, seen)
    if (session.ended) return refuse(response, session.ended)
    if (route === 'POST /sessions/close') return sessions.close(response, session, body?.scope)
    if (route === 'POST /sessions/renew') return sessions.renew(response, site, session, seen)
    if (route === 'POST /messages') return acceptMessage(response, site, session, seen)
    if (route === 'GET /messages') return history(response, session.conversation, query)
    if (route === 'GET /events') return events(response, site, session, seen)
    const answered = features.answer(seen)
    await features.released(path)
    if (answered === 'lost') return response.destroy()
    if (answered && 'code' in answered) return refuse(response, answered)
    if (answered?.status === 204) return response.writeHead(204).end()
    if (answered) return answer(response, answered.status, answered.body)
    return refuse(response, { status: 404, code: 'NotFound' })
  }

  function config(response: ServerResponse, publicSiteKey: string) {
    if (!siteOf(publicSiteKey)) return refuse(response, { status: 404, code: 'InstallationNotFound', terminal: true })
    const appearance = {
      title: 'Nordlicht Support',
      greeting: 'Hi there! Questions about an order or a lamp? We are happy to help.',
      accentColor: '#1f5f4f',
      position: 'right',
      ...options.appearance,
    }
    answer(response, 200, {
      contract: 'service.widget.public-api',
      contractVersion: '1.0',
      publicSiteKey,
      locale: { default: 'en', supported: widgetLanguages },
      appearance,
      capabilities: { typing: true, pageContext: true },
      consent: { required: false },
      availability: { online: true },
      limits: { bodyMaxLength: 4_000, pageContextMaxBytes: 4_096, historyPageMax: 100, outboxMax: 50 },
      realtime: { heartbeatSeconds: 15, reconnectMinMs: 500, reconnectMaxMs: 20_000 },
      ...options.config,
    })
  }

  /**
   * Executes a command from a test. A test that runs in a page sends commands, because it cannot
   * call the server's functions.
   */
  function control({ call, siteKey, value }: { call: string; siteKey: SiteKey; value: unknown }): unknown {
    const site = siteOf(siteKey)
    const newest = [...(site?.sessions.values() ?? [])].at(-1)
    const conversations = new Set([...(site?.sessions.values() ?? [])].map(({ conversation }) => conversation))
    const calls: Record<string, () => unknown> = {
      reset() {
        for (const one of sites.values())
          for (const { conversation } of one.sessions.values()) conversation.cutStreams()
        for (const release of stalled.splice(0)) release()
        sites.clear()
        requests.length = 0
      },
      set() {
        Object.assign(site!.left, value)
        for (const { conversation } of site!.sessions.values()) conversation.set(value as Scenario)
      },
      requests: () => requests.filter(({ method, path }) => `${method} ${path}` === value),
      streams: () => [...conversations].reduce((sum, { streams }) => sum + streams.size, 0),
      messages: () => [...new Set([...site!.sessions.values()].map(({ conversation }) => conversation.messages))],
      agentSays: () => newest?.conversation.agentSays(String(value)),
      agentSaysToAll() {
        for (const conversation of conversations) conversation.agentSays(String(value))
      },
      heartbeat: () => newest?.conversation.heartbeat(),
      revoke: () => newest && sessions.endSession(newest, 'session.revoked', { status: 403, code: 'SessionRevoked' }),
      closeSession: () =>
        newest && sessions.endSession(newest, 'session.closed', { status: 401, code: 'SessionClosed' }),
      stalled: () => stalled.length,
      release: () => {
        for (const release of stalled.splice(0)) release()
      },
    }
    return calls[call]?.()
  }

  function acceptMessage(response: ServerResponse, site: Site, session: Session, seen: SeenRequest) {
    const { content, conversation } = session
    if (session.ended) return refuse(response, session.ended)
    if (spend(site.left, 'stallSends')) {
      stalled.push(() => acceptMessage(response, site, session, seen))
      return
    }
    const clientOperationId = String(seen.body?.clientOperationId)
    if (seen.headers['idempotency-key'] !== clientOperationId) {
      return refuse(response, { status: 400, code: 'IdempotencyKeyMismatch' })
    }
    const refusal = site.left.refuseSends?.shift()
    if (refusal) return refuse(response, refusal)
    const text = JSON.stringify(seen.body)
    const before = conversation.answers.get(clientOperationId)
    if (before) {
      if (before.body !== text) return refuse(response, { status: 409, code: 'IdempotencyConflict' })
      response.setHeader('Idempotency-Replayed', 'true')
      return answer(response, 202, before.answer)
    }
    const accepted = conversation.acceptVisitorMessage(content.sessionId, clientOperationId, String(seen.body?.body))
    conversation.answers.set(clientOperationId, { body: text, answer: accepted })
    if (site.scenario.eventBeforeAnswer) {
      conversation.publishAccepted(clientOperationId)
      setTimeout(() => answer(response, 202, accepted), 50)
      return
    }
    if (spend(site.left, 'loseAnswers')) response.destroy()
    else if (spend(site.left, 'stallAnswers')) stalled.push(() => answer(response, 202, accepted))
    else answer(response, 202, accepted)
    setImmediate(() => conversation.publishAccepted(clientOperationId))
  }

  function history(response: ServerResponse, conversation: ScenarioConversation, query: Record<string, string>) {
    const limit = Number(query.limit ?? 50)
    const after = Number(query.afterSequence ?? 0)
    const before = query.beforeSequence === undefined ? undefined : Number(query.beforeSequence)
    const fits = conversation.messages.filter(({ sequence }) =>
      before === undefined ? sequence > after : sequence < before,
    )
    const messages = before === undefined ? fits.slice(0, limit) : fits.slice(-limit)
    const lastSequence = conversation.lastSequence()
    const hasMore = fits.length > messages.length
    answer(response, 200, { messages, hasMore, lastSequence, oldestSequence: 0, rating: conversation.rating() })
  }

  function events(
    response: ServerResponse,
    site: Site,
    { content, conversation }: Session,
    { query, headers }: SeenRequest,
  ) {
    const refusal = site.left.refuseStreams?.shift()
    if (refusal) return refuse(response, refusal)
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store, no-transform' })
    const lastEvent = /-(\d+)$/.exec(String(headers['last-event-id'] ?? ''))?.[1]
    const positions = [query.afterSequence, lastEvent].flatMap((text) => (text === undefined ? [] : Number(text)))
    conversation.openStream(response, positions.length > 0 ? Math.max(...positions) : undefined, content.sessionId)
  }
}
