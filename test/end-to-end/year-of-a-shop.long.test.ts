import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { startMailServer } from '../../core/test/mail-server.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { consoleCalls } from '../support/console-calls.ts'
import { freePort, type StartedProcess, startProcess } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { startVisitor, type Visitor } from '../support/visitor.ts'

const day = 86_400_000
const origin = 'https://shop.example'
const conversationsPerMonth = 42
const operators = 'operator.v1.OperatorService'
const messaging = 'messaging.v1.MessagingService'

const database = testDatabase({ isNew: true })
const mailServer = await startMailServer()
let clock: string
let service: StartedProcess
let url: string
let passedMs = 0

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'service-year-'))
  atFileEnd(() => rm(dataDir, { recursive: true, force: true }))
  clock = join(dataDir, 'clock')
  await writeFile(clock, '0')
  const [GATEWAY_PORT, CORE_PORT, METRICS_PORT] = [await freePort(), await freePort(), await freePort()].map(String)
  url = `http://localhost:${GATEWAY_PORT}`
  await buildConsoleIfStale()
  const env = {
    MONGODB_URI: database.uri,
    MONGODB_DATABASE: database.name,
    DATA_DIR: dataDir,
    GATEWAY_PORT: GATEWAY_PORT!,
    CORE_PORT: CORE_PORT!,
    METRICS_PORT: METRICS_PORT!,
    PUBLIC_URL: url,
    SMTP_URL: mailServer.url,
    SMTP_FROM: 'Shop <desk@shop.example>',
    // One address makes all requests of the year within minutes.
    RATE_LIMIT_FACTOR: '1000',
    CHAOS_CLOCK: clock,
  }
  const nodeArgs = ['--import', join(import.meta.dirname, '../chaos/moved-clock.ts')]
  service = await startProcess({
    entry: 'serve/main.ts',
    name: 'npm run serve',
    env,
    nodeArgs,
    readyUrl: `${url}/readyz`,
  })
}, 120_000)

/** Lets time pass for the service. */
async function pass(ms: number) {
  passedMs += ms
  await writeFile(clock, String(passedMs))
  const isPassed = ({ session }: Visitor) => Date.parse(session.expiresAt) > Date.now() + passedMs
  await until('the new time', async () => isPassed(await newVisitor()), 100)
}

let siteKey: string
const isOnline = async () => {
  const answer = await fetch(`${url}/api/integrations/v1/widget/config/${siteKey}`, {
    headers: { origin, 'x-service-widget-version': '1.0' },
  })
  return ((await answer.json()) as { availability: { online: boolean } }).availability.online
}
const newVisitor = () => startVisitor({ gatewayUrl: url, origin, siteKey })

/** A person with a browser. All that they do goes through the gateway, as in the console. */
class Person {
  id = ''
  workspaceId = ''
  private readonly post = consoleCalls(url)
  readonly name: string
  readonly mail: string

  constructor(name: string) {
    this.name = name
    this.mail = `${name.toLowerCase()}@shop.example`
  }

  async signIn(link: string, names: object = {}) {
    const signedIn = await this.post('/console/session/sign-in', { link, displayName: this.name, ...names })
    if (signedIn.status !== 200) return signedIn.status
    this.id = signedIn.body.operator
    this.workspaceId = signedIn.body.workspaceId
    return 200
  }

  async signInByMail() {
    const before = mailsTo(this.mail).length
    await this.post('/console/session/mail', { mail: this.mail })
    const mail = await until('the link', () => mailsTo(this.mail)[before])
    expect(await this.signIn(secretIn(mail.text, 'sign-in'))).toBe(200)
  }

  /** Returns the status and the body of a call. */
  call = (method: string, body: object = {}) => this.post(`/rpc/service.${method}`, body)

  /** Returns the body of a call that must succeed. */
  async do(method: string, body: object = {}) {
    const { status, body: answer } = await this.call(method, body)
    expect({ method, status, ...(status !== 200 && { answer }) }).toEqual({ method, status: 200 })
    return answer
  }

  async setMail() {
    const before = mailsTo(this.mail).length
    await this.do(`${operators}/UpdateOwnAccount`, { mail: this.mail })
    const mail = await until('the confirmation', () => mailsTo(this.mail)[before])
    await this.do(`${operators}/ConfirmOwnMail`, { secret: secretIn(mail.text, 'confirm-mail') })
  }

  async invites(name: string, role: string) {
    const invited = new Person(name)
    const { secret } = await this.do(`${operators}/InviteOperator`, { role })
    expect(await invited.signIn(secret)).toBe(200)
    expect(await invited.signIn(secret)).toBe(401)
    await invited.setMail()
    return invited
  }

  answers = (conversationId: string, body: string) =>
    this.do(`${messaging}/SendAgentMessage`, {
      conversationId,
      clientOperationId: randomUUID(),
      body,
      agent: { displayName: this.name },
    })
}

const mailsTo = (address: string) => mailServer.mails.filter(({ to }) => to.includes(address))
const secretIn = (text: string, kind: string) => new RegExp(`#${kind}=([\\w-]+)`).exec(text)![1]!

/** Sets up the website as the owner does in the first hour. */
async function openShop(owner: Person) {
  const { connection } = await owner.do('workspace.v1.WorkspaceService/CreateConnection', {
    workspaceId: owner.workspaceId,
    name: 'Website',
  })
  const { installation } = await owner.do('workspace.v1.WorkspaceService/CreateInstallation', {
    connectionId: connection.connectionId,
    origins: [origin],
    capabilities: { offlineForm: true },
    forms: { offline: { fields: [{ name: 'mail', label: 'Mail', type: 'email', required: true }] } },
  })
  siteKey = installation.publicSiteKey
}

interface Talk {
  visitor: Visitor
  conversationId: string
  by: Person
}

/** Plays one month: each visitor writes a message, and the next member of the team answers it. */
async function month(number: number, team: Person[]): Promise<Talk[]> {
  const talks: Talk[] = []
  for (let index = 0; index < conversationsPerMonth; index += 1) {
    const visitor = await newVisitor()
    const { conversationId } = visitor.session
    expect((await visitor.send(`question ${index} of month ${number}`)).status).toBe(202)
    const by = team[index % team.length]!
    await by.answers(conversationId, `answer ${index} of month ${number}`)
    if (index % 3 > 0) await by.do(`${messaging}/CloseConversation`, { conversationId })
    talks.push({ visitor, conversationId, by })
  }
  return talks
}

const isSignedOut = async (person: Person) => (await person.call(`${operators}/GetOwnAccount`)).status === 401

it('a shop of five people needs no shell for a year', { timeout: 900_000 }, async () => {
  const owner = new Person('Olga')
  const link = await until('the link', () => /#sign-in=(\S+)/.exec(service.output())?.[1])
  expect(await owner.signIn(link, { workspaceName: 'Blumen Olga' })).toBe(200)
  await owner.setMail()
  await openShop(owner)
  const ada = await owner.invites('Ada', 'OPERATOR_ROLE_OPERATOR')
  const ben = await owner.invites('Ben', 'OPERATOR_ROLE_OPERATOR')
  const mia = await owner.invites('Mia', 'OPERATOR_ROLE_OPERATOR')
  const vera = await owner.invites('Vera', 'OPERATOR_ROLE_VIEWER')
  const people = new Set([owner, ada, ben, mia, vera])
  const team = new Set([owner, ada, ben, mia])

  const happenings: Record<number, (talks: Talk[]) => Promise<void>> = {
    async 2([talk]) {
      const { conversationId } = talk!
      const note = { conversationId, clientOperationId: randomUUID(), body: 'a note', agent: { displayName: 'Vera' } }
      expect((await vera.call(`${messaging}/AddNote`, note)).status).toBe(403)
      const role = 'OPERATOR_ROLE_OPERATOR'
      await owner.do(`${operators}/SetOperatorRole`, { operatorId: vera.id, role })
      await until('the role', async () => (await vera.call(`${messaging}/AddNote`, note)).status === 200, 200)
      team.add(vera)
    },
    /** Ben leaves. His assignments and messages keep his name. */
    async 4(talks) {
      const { conversationId } = talks.find(({ by }) => by === ben)!
      const assignment = { conversationId, agent: { displayName: 'Ben' }, operatorId: ben.id }
      await ben.do(`${messaging}/AssignAgent`, assignment)
      await owner.do(`${operators}/RemoveOperator`, { operatorId: ben.id })
      await until('the end of his session', () => isSignedOut(ben), 50)
      people.delete(ben)
      team.delete(ben)
      const { conversation } = await owner.do(`${messaging}/GetConversation`, { conversationId })
      expect(conversation.agent).toMatchObject({ displayName: 'Ben' })
    },
    /** Mia loses her telephone. */
    async 5() {
      const { sessions } = await owner.do(`${operators}/ListSessions`)
      for (const { consoleSessionId, operatorId } of sessions)
        if (operatorId === mia.id) await owner.do(`${operators}/EndSession`, { consoleSessionId })
      await until('the end of her session', () => isSignedOut(mia), 50)
    },
    /** Nobody opens an invitation within its week. */
    async 6() {
      const { secret } = await owner.do(`${operators}/InviteOperator`, { role: 'OPERATOR_ROLE_VIEWER' })
      await pass(8 * day)
      expect(await new Person('Late').signIn(secret)).toBe(401)
    },
    /** The shop changes hands. */
    async 8() {
      const leaving = { operatorId: owner.id }
      expect((await owner.call(`${operators}/RemoveOperator`, leaving)).status).toBe(400)
      await owner.do(`${operators}/SetOperatorRole`, { operatorId: ada.id, role: 'OPERATOR_ROLE_OWNER' })
      await until('the role', async () => (await ada.call(`${operators}/RemoveOperator`, leaving)).status === 200, 200)
      people.delete(owner)
      team.delete(owner)
    },
    /** The shop is on holiday. A visitor leaves an address in the offline form. */
    async 10() {
      const dates = [...Array(10).keys()].map((index) => ({
        date: new Date(Date.now() + passedMs + index * day).toISOString().slice(0, 10),
        hours: [],
      }))
      const availability = { exceptions: { dates } }
      await ada.do('workspace.v1.WorkspaceService/UpdateInstallation', { siteKey, availability })
      await until('the holidays', async () => !(await isOnline()), 100)
      const visitor = await newVisitor()
      const body = { fields: { mail: 'guest@example.org' } }
      const headers = { 'idempotency-key': randomUUID() }
      expect((await visitor.call('POST', '/forms/offline', { headers, body })).status).toBe(202)
      await pass(11 * day)
      await until('the end of the holidays', isOnline, 100)
      const { conversations } = await ada.do(`${messaging}/ListConversations`, { unanswered: true })
      const { conversationId } = visitor.session
      expect(conversations).toMatchObject([{ conversationId }])
    },
  }

  const all: Talk[] = []
  const erased = new Set<string>()
  for (let number = 1; number <= 12; number += 1) {
    const talks = await month(number, [...team])
    all.push(...talks)
    const { visitor, conversationId } = talks[7]!
    const { sessionId } = visitor.session
    const leader = number < 9 ? owner : ada
    const { erasure } = await leader.do('privacy.v1.PrivacyService/EraseVisitor', { visitor: { sessionId } })
    erased.add(conversationId)
    await until('the erasure', async () => {
      const found = await leader.do('privacy.v1.PrivacyService/GetErasure', { erasureId: erasure.erasureId })
      return found.erasure.state !== 'ERASURE_STATE_RUNNING'
    })
    await happenings[number]?.(talks)
    await pass(31 * day)
    for (const person of people) {
      expect(await isSignedOut(person)).toBe(true)
      await person.signInByMail()
    }
  }

  // Each conversation has both messages, except those of erased visitors.
  for (const { conversationId, by } of all) {
    const { status, body } = await ada.call(`${messaging}/ListMessages`, { conversationId })
    if (erased.has(conversationId)) expect(status).toBe(404)
    else
      expect(body.messages).toMatchObject([
        { author: { kind: 'visitor' } },
        { author: { kind: 'agent', displayName: by.name } },
      ])
  }
  expect(service.output()).not.toMatch(/ {4}at |"level":50/)
})
