import { randomUUID } from 'node:crypto'
import { Code, ConnectError } from '@connectrpc/connect'
import { expect } from 'vitest'
import { SubscriptionStatus } from '#proto/lead/v1/subscription_pb.js'
import { TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { OperatorRole } from '#proto/operator/v1/operator_pb.js'
import { botOf, robo } from '../support/bot.ts'
import { consoleCalls } from '../support/console-calls.ts'
import { openRawSocket } from '../support/raw-socket.ts'
import { until } from '../support/until.ts'
import { bearer, message } from './client.ts'
import { createDeliveryClient, idOf } from './delivery-client.ts'
import { MissingAccess } from './missing-access.ts'
import { concurrentRule, rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of the corrections in section 8 of the contract. */
export function fourthEditionRules(suite: () => Suite): void {
  const deliveries = createDeliveryClient(suite)
  const operator = () => suite().roomy.operator

  /** Begins a conversation whose first message has this text. */
  async function withMessage(body: string) {
    const visitor = await suite().roomy.client.visitor()
    await visitor.send(body)
    const [message] = await visitor.history()
    return { visitor, message, conversationId: visitor.session.conversationId, sessionId: visitor.session.sessionId }
  }

  rule('C8.23', async () => {
    const { hooks } = operator()
    const { workspaceId } = suite().roomy.stack.demo
    const path = `/200?${randomUUID()}`
    const destinationUrl = `${suite().receiver.http}${path}`
    const { hookId } = await hooks.createHook({ workspaceId, destinationUrl, eventTypes: ['message.visitor'] })
    await hooks.updateHook({ hookId, status: SubscriptionStatus.DISABLED })
    const text = `withdrawn-${randomUUID()}`
    const { conversationId, message } = await withMessage(text)
    const held = async () => (await hooks.listHooks({ workspaceId })).hooks.find((each) => each.hookId === hookId)
    await until('the held delivery', async () => ((await held())?.heldDeliveries ?? 0) > 0)
    await operator().messaging.redactMessage({ conversationId, sequence: message.sequence })
    await hooks.updateHook({ hookId, status: SubscriptionStatus.ENABLED })
    const isDelivered = () => deliveries.received(path).some(({ body }) => String(body).includes(conversationId))
    await until('the delivery', isDelivered)
    await hooks.deleteHook({ hookId })
    expect(deliveries.received(path).map(({ body }) => String(body).includes(text))).not.toContain(true)
  })

  /** Creates a hook for visitors' messages. The first part of its path selects the receiver's behaviour. */
  async function hookTo(behaviour: string) {
    const { hooks } = operator()
    const { workspaceId } = suite().roomy.stack.demo
    const path = `${behaviour}?${randomUUID()}`
    const destinationUrl = `${suite().receiver.http}${path}`
    const { hookId } = await hooks.createHook({ workspaceId, destinationUrl, eventTypes: ['message.visitor'] })
    const sent = (text: string) => deliveries.received(path).find(({ body }) => String(body).includes(text))
    /** Returns the last attempt to send this text. The hook may also get messages from just before it. */
    const attemptOf = async (text: string) => {
      const request = sent(text)
      const { deliveries: found } = await operator().leads.listDeliveries({ workspaceId, subscriptionId: hookId })
      return found.find(({ deliveryId }) => request && deliveryId === idOf(request))?.latestAttempt
    }
    const answered = (text: string) =>
      until('the answer', async () => {
        const attempt = await attemptOf(text)
        return attempt?.responseText ? attempt : undefined
      })
    return { hookId, path, attemptOf, answered, isSent: (text: string) => sent(text) !== undefined }
  }

  rule('C8.23.kept', async () => {
    const { hooks, leads, messaging } = operator()
    const { hookId, path, attemptOf, answered } = await hookTo('/kept')
    suite().receiver.on(path, (_, response) => response.writeHead(400).end(deliveries.received(path).at(-1)!.body))
    const text = `withdrawn-${randomUUID()}`
    const { conversationId, message } = await withMessage(text)
    const { deliveryId } = await answered(text)
    await messaging.redactMessage({ conversationId, sequence: message.sequence })
    expect((await attemptOf(text))!.responseText).toBe('')
    const since = { seconds: BigInt(Math.floor(Date.now() / 1000) - 3600), nanos: 0 }
    await leads.recoverDeliveries({ subscriptionId: hookId, since })
    const sent = () => deliveries.received(path).filter((request) => idOf(request) === deliveryId)
    const again = await until('the recovered delivery', () => sent()[1])
    await hooks.deleteHook({ hookId })
    expect(String(again.body)).not.toContain(text)
  })

  rule('C8.23.erasure', async () => {
    const { hooks, privacy } = operator()
    const { hookId, isSent } = await hookTo('/200')
    await hooks.updateHook({ hookId, status: SubscriptionStatus.DISABLED })
    const { workspaceId } = suite().roomy.stack.demo
    const [erased, other] = [`erased-${randomUUID()}`, `other-${randomUUID()}`]
    const { sessionId } = await withMessage(erased)
    await withMessage(other)
    const held = async () => (await hooks.listHooks({ workspaceId })).hooks.find((each) => each.hookId === hookId)
    await until('the held deliveries', async () => ((await held())?.heldDeliveries ?? 0) >= 2)
    await privacy.eraseVisitor({ visitor: { by: { case: 'sessionId', value: sessionId } } })
    await hooks.updateHook({ hookId, status: SubscriptionStatus.ENABLED })
    await until('the delivery of the other visitor', () => isSent(other))
    await until('no held delivery', async () => (await held())?.heldDeliveries === 0)
    await hooks.deleteHook({ hookId })
    expect(isSent(erased)).toBe(false)
  })

  rule('C8.24', async () => {
    const { client } = suite().roomy
    const visitor = await client.visitor()
    const left = await client.call('DELETE', '/sessions/identify', { headers: bearer(visitor) })
    expect(left.status).toBe(200)
    if (left.body.sessionId === visitor.session.sessionId) expect(left.body.renewalToken).toBeUndefined()
  })

  rule('C8.25', async () => {
    const before = suite().receiver.bytesSent()
    const { subscriptionId } = await deliveries.subscribe('/continue-flood')
    const attempt = await deliveries.settled(await deliveries.deliver(subscriptionId))
    expect(attempt).toMatchObject({ status: 'failed', responseClass: 'rejected' })
    // What the system holds for the connection is sent, too.
    expect(suite().receiver.bytesSent() - before).toBeLessThan(16_000_000)
  })

  rule('C8.26', async () => {
    const { events, leads, workspaces } = operator()
    const ends: { workspaceId: string; cursor: string }[] = []
    for (const name of ['one', 'other']) {
      const { workspaceId } = (await workspaces.createWorkspace({ name })).workspace!
      await leads.captureLead({ workspaceId, source: 'test', fields: { email: 'ada@example.com' } })
      const page = await until('the event', async () => {
        const found = await events.listEvents({ workspaceId, waitSeconds: 5 })
        return found.events.length > 0 ? found : undefined
      })
      ends.push({ workspaceId, cursor: page.cursor })
    }
    const [{ workspaceId, cursor }, other] = ends as [(typeof ends)[0], (typeof ends)[0]]
    for (const wrong of [other.cursor, cursor.replace(/\d+$/, (number) => `${Number(number) + 1}`)])
      await expect(events.listEvents({ workspaceId, cursor: wrong })).rejects.toThrow('ValidationFailed')
    expect((await events.listEvents({ workspaceId, cursor })).events).toEqual([])
  })

  concurrentRule('C8.28', async () => {
    const { stack } = suite().roomy
    const urls = [stack.gateways[0]!.url, stack.cores[0]!.url].filter((url) => url.startsWith('http:'))
    await Promise.all(
      urls.flatMap((url) =>
        ['', 'GET / HT', 'GET / HTTP/1.1\r\nHost: x\r\n'].map(async (bytes) => {
          const { hostname, port } = new URL(url)
          const began = performance.now()
          const client = openRawSocket(Number(port), bytes, { host: hostname })
          await client.ended
          client.socket.destroy()
          expect(performance.now() - began, `${url} after ${bytes}`).toBeGreaterThan(5_000)
        }),
      ),
    )
  })

  /** Calls a method through a gateway, and returns the answer's status and body. */
  async function call(token: string, method: string, body: object, gateway = 0) {
    const { url } = suite().roomy.stack.gateways[gateway]!
    const response = await fetch(`${url}/rpc/service.${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as { deliveries?: object[] } }
  }

  rule('C8.30', async () => {
    const create = async (scope: string, settings: object) => {
      const destinationUrl = `${suite().receiver.http}/200?${randomUUID()}`
      const token = await deliveries.sessionWith(scope)
      return (await call(token, 'lead.v1.LeadService/CreateSubscription', { destinationUrl, ...settings })).status
    }
    const writing = 'subscriptions:write'
    for (const settings of [{ mappedFields: ['email'] }, { automatic: true }]) {
      expect(await create(writing, settings)).toBe(403)
      expect(await create(`${writing} leads:read`, { ...settings, automatic: false })).toBe(200)
    }
  })

  rule('C8.30.author', async () => {
    const { conversationId } = await withMessage('hello')
    const agent = { displayName: 'Ada' }
    const [ada, eve] = await Promise.all(
      ['ada', 'eve'].map((sub) => deliveries.sessionWith('messages:read messages:write', sub)),
    )
    const sent = { conversationId, clientOperationId: randomUUID(), body: 'A secret', agent }
    expect((await call(ada!, 'messaging.v1.MessagingService/SendAgentMessage', sent)).status).toBe(200)
    const redact = async (token: string, more: object) => {
      const request = { conversationId, sequence: 2, ...more }
      return (await call(token, 'messaging.v1.MessagingService/RedactMessage', request)).status
    }
    expect(await redact(eve!, {})).toBe(403)
    expect(await redact(eve!, { agent })).not.toBe(200)
    expect(await redact(ada!, {})).toBe(200)
  })

  rule('C8.31', async () => {
    const { client, stack } = suite().roomy
    const { siteKey, workspaceId } = stack.demo
    const fields = [{ name: 'email', label: 'E-mail', type: 'email' }]
    const { workspaces, messaging } = operator()
    await workspaces.updateInstallation({
      siteKey,
      capabilities: { offlineForm: true },
      forms: { offline: { fields } },
    })
    const visitor = await client.visitor()
    const body = { fields: { email: 'ada@example.com' } }
    const submitted = await client.call('POST', '/forms/offline', { headers: bearer(visitor), body })
    expect(submitted.status).toBe(202)
    const { conversationId } = visitor.session
    await until('the conversation among the unanswered', async () => {
      let page: Awaited<ReturnType<typeof messaging.listConversations>> | undefined
      do {
        page = await messaging.listConversations({ workspaceId, unanswered: true, pageToken: page?.nextPageToken })
        if (page.conversations.some((each) => each.conversationId === conversationId)) return true
      } while (page.nextPageToken !== undefined)
      return false
    })
  })

  /** Creates an account, and returns the calls of its console. */
  async function newAccount(displayName: string) {
    const { stack } = suite().roomy
    const { workspaceId } = stack.demo
    const { secret } = await operator().operators.inviteOperator({ workspaceId, role: OperatorRole.OPERATOR })
    const call = consoleCalls(stack.gateways[0]!.url)
    const signedIn = await call('/console/session/sign-in', { link: secret, displayName })
    expect(signedIn.status).toBe(200)
    const operatorId: string = signedIn.body.operator
    return {
      operatorId,
      call: (method: string, body: object) => call(`/rpc/service.operator.v1.OperatorService/${method}`, body),
    }
  }

  rule('C8.32', async () => {
    const { messaging } = operator()
    const { workspaceId } = suite().roomy.stack.demo
    const { conversationId } = await withMessage('hello')
    const { operatorId, call } = await newAccount('Ada Berger')
    await messaging.assignAgent({ conversationId, agent: { displayName: 'Ada Berger' }, operatorId })
    expect((await call('UpdateOwnAccount', { name: 'Ada Lindqvist' })).status).toBe(200)
    const assignee = { case: 'operatorId' as const, value: operatorId }
    const listed = await until('the conversation in the list', async () => {
      const { conversations } = await messaging.listConversations({ workspaceId, assignee })
      return conversations.length > 0 && conversations
    })
    expect(listed).toMatchObject([{ conversationId, assignedOperatorId: operatorId }])
  })

  rule('C8.33', async () => {
    const bots = await botOf(suite().roomy.stack).catch(() => {
      throw new MissingAccess('the token of a bot')
    })
    const { visitor, conversationId } = await withMessage('hello')
    const stream = await visitor.openStream({ after: 0 })
    await bots.setBotTyping({ conversationId, state: TypingState.STARTED, bot: robo })
    await bots.sendBotMessage({ conversationId, clientOperationId: randomUUID(), body: 'Hello', bot: robo })
    const author = { kind: 'bot', displayName: robo.displayName }
    const said = (type: string) => stream.events.find((event) => event.type === type)?.data
    await until('the message', () => said('message.received'))
    expect(said('message.received').message.author).toMatchObject(author)
    expect(said('typing.started').author).toMatchObject(author)
    stream.close()
    expect((await visitor.history())[1].author).toMatchObject(author)
  })

  rule('C8.43', async () => {
    const { call } = await newAccount('Mia Moser')
    const chosen = { newConversation: true, answerInMine: false, waitingMinutes: 5, detail: 'name', mailMinutes: 0 }
    expect((await call('UpdateOwnNotifications', { notifications: chosen })).status).toBe(200)
    const { body } = await call('GetOwnNotifications', {})
    // JSON leaves out what is false, 0 or empty.
    expect(body.notifications).toEqual({ newConversation: true, waitingMinutes: 5, detail: 'name' })
    // An uncompressed point of P-256.
    expect(Buffer.from(body.publicKey, 'base64url')).toHaveLength(65)
    for (const wrong of [{ detail: 'all' }, { waitingMinutes: 241 }, { mailMinutes: 241 }])
      expect((await call('UpdateOwnNotifications', { notifications: { ...chosen, ...wrong } })).status).toBe(400)
    const keys = { p256dh: body.publicKey, auth: Buffer.alloc(16).toString('base64url') }
    for (const endpoint of ['http://push.example/1', 'https://192.0.2.1/1'])
      expect((await call('SetPushSubscription', { ...keys, endpoint })).status).toBe(400)
  })

  rule('C8.34', async () => {
    const { messaging, privacy } = operator()
    const { workspaceId } = suite().roomy.stack.demo
    const { conversationId, sessionId } = await withMessage('hello')
    const stop = new AbortController()
    const removed: string[] = []
    let isReady = false
    const watching = (async () => {
      for await (const { frame } of messaging.watchConversations({ workspaceId }, { signal: stop.signal })) {
        isReady ||= frame.case === 'ready'
        if (frame.case === 'removed') removed.push(...frame.value.conversationIds)
      }
    })().catch(() => {})
    await until('the watch', () => isReady)
    await privacy.eraseVisitor({ visitor: { by: { case: 'sessionId', value: sessionId } } })
    await until('the frame', () => removed.includes(conversationId))
    stop.abort()
    await watching
  })

  rule('C8.44', async () => {
    const { events, hooks } = operator()
    const { workspaceId } = suite().roomy.stack.demo
    const { hookId, path, answered } = await hookTo('/quoted')
    const [quoted, said] = [`quoted-${randomUUID()}`, `said-${randomUUID()}`]
    suite().receiver.on(path, (_, response) => response.writeHead(422).end(quoted + 'x'.repeat(500)))
    await withMessage(said)
    const { responseText } = await answered(said)
    expect(responseText).toHaveLength(300)
    expect(responseText).toContain(quoted)
    const shownTo = async (scope: string) => {
      const body = { workspaceId, subscriptionId: hookId }
      const token = await deliveries.sessionWith(scope)
      const answer = await call(token, 'lead.v1.LeadService/ListDeliveries', body)
      // The feed may be behind, so the hook may also get a message from just before it.
      expect(answer.body.deliveries ?? []).not.toEqual([])
      return JSON.stringify(answer.body).includes(quoted)
    }
    expect(await shownTo('leads:read messages:read')).toBe(true)
    expect(await shownTo('leads:read')).toBe(false)
    let cursor = ''
    for (let size = 1; size > 0; ) {
      const page = await events.listEvents({ workspaceId, cursor })
      const text = JSON.stringify(page, (_, value) => (typeof value === 'bigint' ? String(value) : value))
      expect(text).not.toContain(quoted)
      size = page.events.length
      cursor = page.cursor
    }
    await hooks.deleteHook({ hookId })
  })

  rule('C8.45', async () => {
    const { client, stack } = suite().roomy
    const { siteKey } = stack.demo
    const visitor = await client.visitor()
    const set = (is: boolean) =>
      operator().workspaces.updateInstallation({
        siteKey,
        capabilities: {
          ...{ identity: is, typing: is, pageContext: is, screenshots: is },
          ...{ navigation: is, receipts: is, stopAnswer: is },
        },
      })
    const calls = [
      '/sessions/identify',
      '/typing',
      '/context/page',
      '/commands/screenshots/none/upload',
      '/commands/screenshots/none/acknowledgements',
      '/commands/navigation/none/acknowledgements',
      '/messages/receipts',
      '/messages/none/stop',
    ]
    await set(false)
    try {
      const left = await client.call('DELETE', '/sessions/identify', { headers: bearer(visitor) })
      expect(left.status).toBe(200)
      const headers = { ...bearer(visitor), 'idempotency-key': 'ö' }
      for (const path of calls)
        await client.fails('RouteNotAdvertised', 'POST', path, { headers, body: { unknown: 1 } })
    } finally {
      await set(true)
    }
  })

  rule('C8.46', async () => {
    const { client, stack } = suite().roomy
    const names = ['traceparent', 'tracestate', 'baggage', 'sentry-trace', 'newrelic']
    for (const each of ['origin', 'parent-id', 'sampling-priority', 'sampled', 'trace-id'])
      names.push(`x-datadog-${each}`)
    const preflight = await client.call('OPTIONS', '/messages', {
      headers: { 'access-control-request-method': 'POST', 'access-control-request-headers': names.join(',') },
    })
    const allowed = preflight.headers.get('access-control-allow-headers')?.toLowerCase().split(/, ?/)
    expect(allowed).toEqual(expect.arrayContaining(names))
    const visitor = await client.visitor()
    const added = Object.fromEntries(names.map((name) => [name, 'not what {monitoring} sends']))
    const config = await client.call('GET', `/config/${stack.demo.siteKey}`, { headers: added })
    expect(config.status).toBe(200)
    const clientOperationId = randomUUID()
    const headers = { ...bearer(visitor), ...added, 'idempotency-key': clientOperationId }
    expect((await client.call('POST', '/messages', { headers, body: message(clientOperationId) })).status).toBe(202)
  })

  rule('C8.47', async () => {
    const { receiver } = suite()
    const answerWith = async (bytes: string) => {
      const { subscriptionId, path } = await deliveries.subscribe('/raw')
      receiver.on(path, ({ socket }) => socket.end(bytes))
      return { path, first: await deliveries.deliver(subscriptionId) }
    }
    const interim = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
    const read = await answerWith(`${interim}HTTP/1.1 204 No Content\r\n\r\n`)
    expect((await deliveries.settled(read.first)).status).toBe('accepted')
    const unreadable = await answerWith('220 mail.example ESMTP\r\n')
    let last = await deliveries.settled(unreadable.first)
    for (const end of ['retry_scheduled', 'failed']) {
      expect(last).toMatchObject({ status: 'retry_scheduled', responseClass: 'unreadable_answer' })
      const retry = { idempotencyKey: randomUUID() }
      const repeat = () => deliveries.request(`retries/${last.attemptId}`, retry)
      last = await deliveries.settled({ repeat, attempt: (await repeat()).body })
      expect(last.status).toBe(end)
    }
    expect([deliveries.received(read.path).length, deliveries.received(unreadable.path).length]).toEqual([1, 3])
  })

  rule('C8.48', async () => {
    const { workspaces } = operator()
    const { workspaceId } = suite().roomy.stack.demo
    const subject = `leaked-${randomUUID()}`
    const token = await deliveries.sessionWith('workspaces:read', subject)
    const statuses = () =>
      Promise.all(
        [0, 1].map(
          async (at) => (await call(token, 'workspace.v1.WorkspaceService/GetWorkspace', { workspaceId }, at)).status,
        ),
      )
    expect(await statuses()).toEqual([200, 200])
    const used = await until('the token in the list', async () =>
      (await workspaces.listTokens({ workspaceId })).tokens.find((each) => each.subject === subject),
    )
    await workspaces.revokeToken({ tokenId: used.tokenId })
    expect(await statuses()).toEqual([401, 401])
  })

  rule('C8.49', async () => {
    const { visitor, message } = await withMessage('a\u000bb\u000cc\u0085d\u2028e\u2029f\r\ng\rh')
    expect(message.body).toBe('a\nb\nc\nd\ne\nf\ng\nh')
    expect((await visitor.history())[0].body).toBe(message.body)
  })
}

/** Tests of limits, which make hundreds of calls. */
export function limitRules(suite: () => Suite): void {
  const operator = () => suite().roomy.operator

  rule('C8.27', async () => {
    const { workspaces, hooks, leads } = operator()
    const { workspaceId } = (await workspaces.createWorkspace({ name: 'many' })).workspace!
    const destinationUrl = `${suite().receiver.http}/200`
    const max = 100
    const all = Array.from({ length: max + 1 })
    const createHook = () => hooks.createHook({ workspaceId, destinationUrl, eventTypes: ['message.visitor'] })
    const subscribe = () => leads.createSubscription({ workspaceId, destinationUrl, mappedFields: ['email'] })
    const list = async (ofPage: (pageToken: string) => Promise<{ ids: string[]; nextPageToken: string }>) => {
      const found: string[] = []
      for (let pageToken: string | undefined; pageToken !== ''; ) {
        const page = await ofPage(pageToken ?? '')
        found.push(...page.ids)
        pageToken = page.nextPageToken
      }
      return new Set(found).size
    }
    for (const create of [createHook, subscribe]) {
      const created = await Promise.allSettled(all.map(async () => void (await create())))
      expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(max)
    }
    const hooksListed = await list(async (pageToken) => {
      const page = await hooks.listHooks({ workspaceId, pageToken, limit: 30 })
      return { ...page, ids: page.hooks.map(({ hookId }) => hookId) }
    })
    const subscriptionsListed = await list(async (pageToken) => {
      const page = await leads.listSubscriptions({ workspaceId, pageToken, limit: 30 })
      return { ...page, ids: page.subscriptions.map(({ subscriptionId }) => subscriptionId) }
    })
    expect([hooksListed, subscriptionsListed]).toEqual([max, max])
  })

  rule('C8.29', async () => {
    const { workspaceId } = suite().roomy.stack.demo
    const { events } = operator()
    const stop = new AbortController()
    const follow = async () => {
      for await (const _ of events.followEvents({ workspaceId }, { signal: stop.signal }));
    }
    const codes: Code[] = []
    const following = Array.from({ length: 200 }, () =>
      follow().catch((error) => codes.push(ConnectError.from(error).code)),
    )
    await until('a refusal', () => codes.includes(Code.ResourceExhausted))
    // Followers of the feed take no places of calls that read it.
    await events.listEvents({ workspaceId })
    stop.abort()
    await Promise.all(following)
  })
}
