import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Db, MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dumpDatabase, restoreDump, restoreSnapshot } from '../support/database-dump.ts'
import { someOf } from '../support/is-long.ts'
import { useLocalStack } from '../support/local-stack.ts'
import type { Operator } from '../support/operator.ts'
import { inheritedEnvironment } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import type { EventStream, Visitor } from '../support/visitor.ts'
import { openWidget, type Widget } from './headless-widget.ts'
import { watchInbox } from './watch-inbox.ts'

const root = join(import.meta.dirname, '../..')

const database = testDatabase({ isNew: true })
const client = new MongoClient(database.uri)
afterAll(() => client.close())

/** Runs the command that an operator runs after the restore of a snapshot. */
async function migrateRestored(dataDir: string): Promise<string> {
  const env = {
    ...inheritedEnvironment(),
    DATA_DIR: dataDir,
    MONGODB_URI: database.uri,
    MONGODB_DATABASE: database.name,
  }
  const { stdout } = await promisify(execFile)(process.execPath, ['dev/migrate.ts', '--restored'], { cwd: root, env })
  return stdout
}

const ways: { name: string; restore(db: Db, dump: Awaited<ReturnType<typeof dumpDatabase>>): Promise<void> }[] = [
  { name: 'mongorestore', restore: restoreDump },
  {
    name: 'the restore of a snapshot and npm run migrate -- --restored',
    async restore(db, dump) {
      await restoreSnapshot(db, dump)
      expect(await migrateRestored(stack.dataDir)).toContain('A new history has begun')
    },
  },
]

let operator: Operator
const stack = useLocalStack({
  database,
  cores: 2,
  gateways: 2,
  env: { RATE_LIMIT_FACTOR: '1000', HEARTBEAT_SECONDS: '1' },
})
beforeAll(async () => {
  operator = stack.operator()
})

const ownOrigin = () => stack.demo.origin
const say = (visitor: Visitor, body: string) => sayIn(visitor.session.conversationId, body)
const sayIn = (conversationId: string, body: string) =>
  operator.messaging.sendAgentMessage({
    conversationId,
    clientOperationId: randomUUID(),
    body,
    agent: { displayName: 'Ada' },
  })
const bodiesOf = (widget: Widget) => widget.messages().map(({ body }) => body)
const typesOf = ({ events }: EventStream) => events.map(({ type }) => type)
const reset = (sequence: number) => ({
  type: 'replay.reset.required',
  sequence,
  data: { reason: 'epoch_changed', reauthenticationRequired: false },
})

describe.each(someOf(ways, 1))('after $name', ({ restore }) => {
  let [early, idle, banned, revoked, late]: Visitor[] = []
  let openStream: EventStream
  let lastEventId = ''
  let idleStart = ''
  let inbox: ReturnType<typeof watchInbox>
  let renewal: { sessionId: string; renewalToken: string }
  let pageToken = ''
  const widgets: Record<'reads' | 'clears' | 'leaves', Widget> = {} as never
  let conversationOf: (widget: keyof typeof widgets) => string
  const word = `quince${randomUUID().slice(0, 8)}`

  beforeAll(async () => {
    const { workspaceId } = stack.demo
    const visitors = await Promise.all(Array.from({ length: 4 }, () => stack.newVisitor()))
    ;[early, idle, banned, revoked] = visitors
    for (const visitor of visitors) await visitor.send('before the backup')
    await say(early!, 'two')
    for (const name of ['reads', 'clears', 'leaves'] as const) {
      widgets[name] = openWidget({ ...stack.demo, gatewayUrl: stack.gateways[0]!.url })
      await widgets[name].start()
    }
    const ids = new Map(Object.entries(widgets).map(([name, widget]) => [name, widget.session()!.conversationId]))
    conversationOf = (widget) => ids.get(widget)!
    for (const widget of Object.values(widgets)) {
      widget.sendMessage('question')
      await until('the question', () => widget.messages().at(-1)?.messageId !== undefined)
    }
    for (const name of ['one', 'two', 'three'])
      await operator.leads.captureLead({ workspaceId, source: name, fields: { email: `${name}@example.com` } })
    const db = client.db(database.name)
    await Promise.all(stack.cores.map((core) => core.stop()))
    const dump = await dumpDatabase(db)
    await Promise.all(stack.cores.map((core) => core.start()))

    // Everything from here on happens after the backup.
    openStream = await openStreamOf(early!, { after: 0 })
    for (const text of ['three', 'four', 'five']) await say(early!, text)
    await until('five events', () => openStream.events.length === 5)
    lastEventId = openStream.events.at(-1)!.id
    for (const text of ['b', 'c', 'd']) await say(idle!, text)
    const { replay } = (await renew(idle!)).body
    idleStart = `${replay.epoch}-${replay.lastSequence}`
    for (const [name, widget] of Object.entries(widgets)) {
      for (const body of ['old one', 'old two', 'old three'])
        await sayIn(conversationOf(name as keyof typeof widgets), body)
      await until('the messages', () => bodiesOf(widget).includes('old three'))
    }
    widgets.reads.markRead()
    await widgets.clears.resetVisitor({ clearHistory: true })
    widgets.leaves.markRead()
    await widgets.leaves.resetVisitor({ clearHistory: true })
    widgets.leaves.stop()
    late = await stack.newVisitor()
    await late.sendUntilAccepted('after the backup')
    await operator.sessions.banVisitor({ sessionId: banned!.session.sessionId, reason: 'spam' })
    await operator.sessions.revokeSession({ sessionId: revoked!.session.sessionId })
    await operator.workspaces.updateInstallation({
      siteKey: stack.demo.siteKey,
      origins: [ownOrigin(), 'https://later.example'],
    })
    await until('the new origin', async () => (await configAt('https://later.example')) === 200)
    pageToken = (await operator.leads.listLeads({ workspaceId, limit: 1 })).nextPageToken
    await operator.leads.captureLead({ workspaceId, source: 'late', fields: { email: 'late@example.com' } })
    inbox = watchInbox(operator, workspaceId)
    await inbox.ready()
    renewal = { sessionId: early!.session.sessionId, renewalToken: early!.session.renewalToken }

    await Promise.all(stack.cores.map((core) => core.stop()))
    await restore(db, dump)
    await Promise.all(stack.cores.map((core) => core.start()))
    for (const text of ['new three', 'new four', 'new five', `new six ${word}`]) await say(early!, text)
    for (const text of ['new b', 'new c', 'new d', 'new e']) await say(idle!, text)
    for (const name of ['reads', 'clears', 'leaves'] as const)
      for (const body of ['new one', 'new two', 'new three']) await sayIn(conversationOf(name), body)
  })
  afterAll(() => {
    for (const widget of Object.values(widgets)) widget.stop()
  })

  it.each(['reads', 'clears', 'leaves'] as const)(
    'a widget that %s shows each new message, and counts it as unread until the visitor reads it',
    async (name) => {
      const widget = widgets[name]
      if (name === 'leaves') await widget.start()
      const fresh = ['new one', 'new two', 'new three']
      await until('the new messages', () => fresh.every((body) => bodiesOf(widget).includes(body)))
      expect(bodiesOf(widget)).not.toContain('old one')
      expect(widget.unread()).toBe(3)
      const statesOf = async () => {
        const { messages } = await operator.messaging.listMessages({ conversationId: conversationOf(name), limit: 10 })
        return messages.filter(({ body }) => body.startsWith('new')).map(({ state }) => state)
      }
      await until('the receipts', async () => (await statesOf()).every((state) => state === 'delivered'))
      widget.markRead()
      await until('the read receipt', async () => (await statesOf()).every((state) => state === 'read'))
    },
  )

  it('a stream that stayed open at its gateway gets a reset', async () => {
    await until('the reset', () => typesOf(openStream).includes('replay.reset.required'))
    await openStream.ended
    expect(openStream.events.slice(5)).toMatchObject([{ type: 'replay.reset.required', data: reset(0).data }])
  })

  it('a stream that resumes from an id of before gets a reset on each core, and no reused event', async () => {
    for (const { url: via } of stack.gateways) {
      const stream = await openStreamOf(early!, { after: 5, lastEventId, via })
      await stream.ended
      expect(stream.events).toMatchObject([reset(6)])
    }
  })

  it('a reader that has only its session and no event yet gets a reset too', async () => {
    const stream = await openStreamOf(idle!, { lastEventId: idleStart })
    await stream.ended
    expect(stream.events).toMatchObject([reset(5)])
  })

  it('an id of another visitor, of before or after the restore, ends the session for this client', async () => {
    const { epoch } = (await renew(idle!)).body.replay
    for (const id of [idleStart, `${epoch}-1`]) {
      const stream = await openStreamOf(early!, { lastEventId: id })
      await stream.ended
      const data = { reason: 'epoch_changed', reauthenticationRequired: true }
      expect(stream.events).toMatchObject([{ type: 'replay.reset.required', data }])
    }
  })

  it('the history has the messages of the backup and the new ones, and the stream continues from its end', async () => {
    const { messages, lastSequence } = await early!.readPages()
    const texts = ['before the backup', 'two', 'new three', 'new four', 'new five', `new six ${word}`]
    expect(messages.map(({ body }) => body)).toEqual(texts)
    const stream = await openStreamOf(early!, { after: lastSequence })
    await say(early!, 'new seven')
    await until('the next event', () => stream.events.length > 0)
    expect(stream.events).toMatchObject([{ type: 'message.received', sequence: 7 }])
    stream.close()
    expect(stream.events[0]!.id.split('-')[0]).not.toBe(lastEventId.split('-')[0])
  })

  it('a renewal with an event id of before reports the reset and the new epoch', async () => {
    const answer = await renew(early!, { ...renewal, lastSeenEventId: lastEventId })
    expect(answer).toMatchObject({
      status: 200,
      body: { replay: { state: 'reset_required' }, continuity: { state: 'reset' } },
    })
    const { epoch, lastSequence } = answer.body.replay
    const stream = await openStreamOf(early!, { lastEventId: `${epoch}-${lastSequence - 1}` })
    await until('the last event', () => stream.events.length > 0)
    expect(stream.events[0]!.id).toBe(`${epoch}-${lastSequence}`)
    stream.close()
  })

  it('a new session gets the epoch that its stream has', async () => {
    const visitor = await stack.newVisitor()
    const stream = await openStreamOf(visitor, {})
    await visitor.send('hello')
    await until('the message', () => stream.events.length > 0)
    expect(stream.events[0]!.id).toBe(`${visitor.session.replay.epoch}-1`)
    stream.close()
  })

  it('an inbox watch has ended, and the next one brings the new messages', async () => {
    await inbox.ended
    const next = watchInbox(operator, stack.demo.workspaceId)
    await next.ready()
    await say(early!, 'to the inbox')
    await until('the message', () => next.eventsOf(early!.session.conversationId).length > 0)
    next.close()
  })

  it('a session of after the backup is refused, and the visitor can start a new one', async () => {
    const answer = await late!.sendUntilAccepted('still here?')
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.body.retryable).toBe(false)
    expect((await (await stack.newVisitor()).send('hello again')).status).toBe(202)
  })

  it('a ban and a revocation of after the backup are undone', async () => {
    expect((await banned!.send('I am back')).status).toBe(202)
    expect((await revoked!.send('I am back')).status).toBe(202)
  })

  it('gateways forget an origin that was allowed after the backup', async () => {
    await until('the refusal', async () => (await configAt('https://later.example')) === 403)
  })

  it('search finds new messages, and none of those that are gone', async () => {
    const find = async (query: string) =>
      (await operator.messaging.searchConversations({ workspaceId: stack.demo.workspaceId, query })).results.length
    await until('the message', async () => (await find(word)) === 1)
    expect(await find('"after the backup"')).toBe(0)
  })

  it('a page token of before continues the list without an error', async () => {
    const { leads } = await operator.leads.listLeads({ workspaceId: stack.demo.workspaceId, limit: 100, pageToken })
    expect(leads.length).toBeGreaterThan(1)
    expect(leads.map(({ source }) => source)).not.toContain('late')
  })
})

/** Opens a stream. Repeats the request while the gateway connects to the restarted cores. */
const openStreamOf = (visitor: Visitor, start: Parameters<Visitor['openStream']>[0]) =>
  until('the stream', async () => {
    const stream = await visitor.openStream(start)
    return stream.status === 200 ? stream : undefined
  })

function renew(visitor: Visitor, body?: object) {
  const { sessionId, renewalToken } = visitor.session
  return visitor.call('POST', '/sessions/renew', {
    body: { sessionId, renewalToken, ...body },
    headers: { 'Idempotency-Key': randomUUID() },
  })
}

async function configAt(origin: string): Promise<number> {
  const url = `${stack.gateways[0]!.url}/api/integrations/v1/widget/config/${stack.demo.siteKey}`
  const answer = await fetch(url, { headers: { Origin: origin, 'X-Service-Widget-Version': '1.0' } })
  await answer.body?.cancel()
  return answer.status
}
