import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { signAssertion } from '../support/assertion.ts'
import { until } from '../support/until.ts'
import type { Visitor } from '../support/visitor.ts'
import { bearer, message } from './client.ts'
import { readRaw } from './raw-stream.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const page = { url: 'https://shop.example/cart' }
const observations: [path: string, body: object][] = [
  ['/context/page', page],
  ['/typing', { state: 'started' }],
  ['/typing', { state: 'stopped' }],
  ['/presence', { tab: 'tab-1', state: 'here' }],
  ['/presence', { tab: 'tab-1', state: 'away' }],
]
const consent = (policyVersion: string) => ({
  required: true,
  policyUrl: 'https://shop.example/privacy',
  policyVersion,
})

/** Tests of contract section 7 about consent, positions, the panel, categories, bans and capabilities. */
export function visitorPolicyRules(suite: () => Suite): void {
  async function newSite(settings: object = {}) {
    const { operator, stack } = suite().roomy
    const { origin, workspaceId } = stack.demo
    const { connection } = await operator.workspaces.createConnection({ workspaceId, name: 'Visitors' })
    const { installation, identitySecret } = await operator.workspaces.createInstallation({
      connectionId: connection!.connectionId,
      origins: [origin],
      ...settings,
    })
    const siteKey = installation!.publicSiteKey
    const { kid, secret } = identitySecret!
    return {
      siteKey,
      visitor: () => stack.newVisitor({ origin, siteKey }),
      sign: (sub: string) => signAssertion({ siteKey, kid, secret }, { claims: { sub } }),
      update: (changed: object) => operator.workspaces.updateInstallation({ siteKey, ...changed }),
    }
  }

  const gateways = () => suite().roomy.stack.gateways.map(({ url }) => url)
  const post = (visitor: Visitor, path: string, body: object, { key, via }: { key?: string; via?: string } = {}) =>
    suite().roomy.client.call('POST', path, {
      headers: { ...bearer(visitor), ...(key !== undefined && { 'idempotency-key': key }) },
      body,
      via,
    })
  const shown = async ({ session: { sessionId } }: Visitor) =>
    (await suite().roomy.operator.sessions.getSession({ sessionId })).session!
  const identify = (visitor: Visitor, assertion: string) =>
    post(visitor, '/sessions/identify', { assertion }, { key: randomUUID() })

  rule('C7.3', async () => {
    const { client, stack } = suite().roomy
    const site = await newSite({ consent: consent('v1') })
    const visitor = await site.visitor()
    const answers = async () => {
      const all = gateways().flatMap((via) =>
        observations.map(async ([path, body]) => {
          const { status, body: answer } = await post(visitor, path, body, { via })
          return status === 204 ? 204 : `${status} ${answer.code}`
        }),
      )
      return [...new Set(await Promise.all(all))]
    }
    const decide = (decision: string, policyVersion = 'v1') =>
      post(visitor, '/sessions/consent', { policyVersion, decision }, { key: randomUUID() })
    const refused = ['403 ConsentRequired']
    expect(await answers()).toEqual(refused)
    await decide('denied')
    expect(await answers()).toEqual(refused)
    await decide('granted')
    expect(await answers()).toEqual([204])
    expect((await shown(visitor)).pageContext?.url).toBe(page.url)
    await decide('denied')
    expect(await answers()).toEqual(refused)
    await decide('granted')
    await site.update({ consent: consent('v2') })
    expect(await answers()).toEqual(refused)
    await decide('granted', 'v2')
    expect(await answers()).toEqual([204])
    const created = await client.call('POST', '/sessions', {
      headers: { 'idempotency-key': randomUUID() },
      body: { publicSiteKey: site.siteKey, clientInstanceId: randomUUID(), pageContext: page },
    })
    expect(created.status).toBe(201)
    const { session } = await suite().roomy.operator.sessions.getSession({ sessionId: created.body.sessionId })
    expect([session!.pageContext, stack.demo.workspaceId]).toEqual([undefined, session!.workspaceId])
  })

  rule('C7.6', async () => {
    const site = await newSite()
    const dataOf = async (visitor: Visitor, lastEventId: string) => {
      const stream = await visitor.openStream({ lastEventId })
      await stream.ended
      return stream.events.map(({ data }) => data)
    }
    const [visitor, other] = [await site.visitor(), await site.visitor()]
    const reason = 'epoch_changed'
    const foreign = [{ reason, reauthenticationRequired: true }]
    expect(await dataOf(visitor, `${other.session.replay.epoch}-0`)).toEqual(foreign)
    for (const lastEventId of [`${randomUUID().slice(0, 8)}-0`, 'nonsense'])
      expect(await dataOf(visitor, lastEventId)).toEqual([{ reason, reauthenticationRequired: false }])
    const ahead = [{ reason: 'position_unknown', reauthenticationRequired: false }]
    expect(await dataOf(visitor, `${visitor.session.replay.epoch}-99`)).toEqual(ahead)
    await suite().roomy.operator.privacy.eraseVisitor({
      visitor: { by: { case: 'sessionId', value: other.session.sessionId } },
    })
    const { conversationId } = other.session
    await until('the removal', () =>
      suite()
        .roomy.operator.messaging.listMessages({ conversationId })
        .then(
          () => false,
          () => true,
        ),
    )
    expect(await dataOf(visitor, `${other.session.replay.epoch}-0`)).toEqual(foreign)
  })

  rule('C7.8', async () => {
    const visitor = await (await newSite()).visitor()
    const close = () => post(visitor, '/sessions/close', { scope: 'panel' }, { key: randomUUID() })
    expect((await shown(visitor)).panelClosedAt).toBeUndefined()
    expect((await close()).body).toEqual({ sessionId: visitor.session.sessionId, state: 'active' })
    expect((await shown(visitor)).panelClosedAt).toBeDefined()
    const key = randomUUID()
    for (const [path, body, options] of [
      ['/messages', message(key), { key }],
      ['/typing', { state: 'started' }, {}],
      ['/presence', { tab: 'tab-1', state: 'here' }, {}],
    ] as const) {
      if ((await shown(visitor)).panelClosedAt === undefined) await close()
      await until(`the panel is open after ${path}`, async () => {
        await post(visitor, path, path === '/messages' ? message(randomUUID()) : body, options.key ? {} : options)
        if (path === '/messages') {
          const operation = randomUUID()
          await post(visitor, path, message(operation), { key: operation })
        }
        return (await shown(visitor)).panelClosedAt === undefined
      })
    }
  })

  rule('C7.9', async () => {
    const { client, operator } = suite().roomy
    const site = await newSite()
    const { body } = await client.call('GET', `/config/${site.siteKey}`)
    expect(body.compatibility).toEqual({ informational: 'ignore', security: 'stop', command: 'decline' })
    const visitor = await site.visitor()
    const { conversationId, sessionId } = visitor.session
    await operator.messaging.sendAgentMessage({ conversationId, clientOperationId: randomUUID(), body: 'Hello' })
    await operator.commands.requestNavigation({ sessionId, url: `${suite().roomy.stack.demo.origin}/a` })
    const received = await readRaw(suite().roomy, visitor, '?afterSequence=0', (text) =>
      text.includes('navigation.requested'),
    )
    const events = [...received.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!))
    expect(events.map(({ type, category }) => [type, category])).toEqual([
      ['message.received', 'informational'],
      ['navigation.requested', 'command'],
    ])
    const stream = readRaw(suite().roomy, visitor, '', (text) => text.includes('session.revoked'))
    await operator.sessions.revokeSession({ sessionId })
    expect(await stream.catch(() => '"category":"security"')).toContain('"category":"security"')
  })

  rule('C7.12', async () => {
    const { operator, stack } = suite().roomy
    const [first, second] = [await newSite(), await newSite()]
    const sub = randomUUID()
    const visitor = await first.visitor()
    const { body: verified } = await identify(visitor, first.sign(sub))
    await operator.sessions.banVisitor({ sessionId: verified.sessionId, reason: 'spam' })
    const refused = async () => {
      for (const site of [first, second]) {
        const { status, body } = await identify(await site.visitor(), site.sign(sub))
        expect([status, body.code]).toEqual([403, 'VisitorBanned'])
      }
    }
    await refused()
    const { workspaceId } = stack.demo
    const subject = { workspaceId, externalSubject: sub }
    await operator.privacy.eraseVisitor({ visitor: { by: { case: 'subject', value: subject } } })
    await until('the removal', () =>
      operator.sessions.getSession({ sessionId: verified.sessionId }).then(
        () => false,
        () => true,
      ),
    )
    await refused()
    await operator.sessions.unbanVisitor({ subject })
    for (const site of [first, second]) expect((await identify(await site.visitor(), site.sign(sub))).status).toBe(200)
  })

  rule('C7.13', async () => {
    const site = await newSite()
    const visitor = await site.visitor()
    const receipt = { upToSequence: 1, state: 'read' }
    const presence = { tab: 'tab-1', state: 'here' }
    for (const key of [undefined, 'key', 'not a key'])
      for (const [path, body] of [
        ['/presence', presence],
        ['/messages/receipts', receipt],
      ] as const)
        expect((await post(visitor, path, body, { key })).status).toBe(204)
    const badKey = await post(visitor, '/typing', { state: 'started' }, { key: 'not a key' })
    expect([badKey.status, badKey.body.code]).toEqual([400, 'IdempotencyKeyInvalid'])
    expect((await post(visitor, '/typing', { state: 'started' }, { key: 'key' })).status).toBe(204)
    const report = (url: string) => post(visitor, '/context/page', { url }, { key: 'page' })
    expect((await report('https://shop.example/a')).status).toBe(204)
    expect((await report('https://shop.example/a')).status).toBe(204)
    const other = await report('https://shop.example/b')
    expect([other.status, other.body.code]).toEqual([409, 'IdempotencyConflict'])
    await site.update({ capabilities: { presence: false, receipts: false } })
    for (const via of gateways())
      for (const [path, body] of [
        ['/presence', presence],
        ['/messages/receipts', receipt],
      ] as const) {
        const { status, body: answer } = await post(visitor, path, body, { via })
        expect([status, answer.code]).toEqual([404, 'RouteNotAdvertised'])
      }
  })
}
