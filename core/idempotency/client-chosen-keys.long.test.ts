import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type { Collection } from 'mongodb'
import { beforeAll, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { cancelCommand, requestNavigation, requestScreenshot } from '../commands/commands.ts'
import { assignAgent, closeConversation } from '../conversations/assignments.ts'
import { updateMessageStates } from '../conversations/message-states.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { giveRating } from '../conversations/ratings.ts'
import { setTypingOfVisitor } from '../conversations/typing.ts'
import type { Collections } from '../database/collections.ts'
import { indexes } from '../database/indexes.ts'
import { createAttempt } from '../deliveries/deliveries.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { createSubscription } from '../deliveries/subscriptions.ts'
import type { EventType } from '../log-event.ts'
import { operationId } from '../rules.ts'
import type { SessionContent } from '../sessions/model.ts'
import { type TestCores, testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { closeSession, reportPage, revokeSession } from '../visitors/sessions.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'

const cores = testCores({ env: { DELIVERY_ALLOWED_CIDRS: '127.0.0.0/8' } })
let subscriptionId: string
let leadId: string
const operator = { subject: 'ada' }

beforeAll(async () => {
  const { core, publicSiteKey, workspaceId } = cores
  const capabilities = { offlineForm: true, preChatForm: true, navigation: true, screenshots: true, typing: true }
  await updateInstallation(core, publicSiteKey, { capabilities, forms: { offline: [] } }, undefined)
  const settings = { workspaceId, destinationUrl: 'http://127.0.0.1:9/', mappedFields: [], automatic: true }
  subscriptionId = (await createSubscription(core, settings, operator)).subscriptionId
  leadId = await captureLead(core, { workspaceId, source: 'test', fields: {} }, undefined)
})

/** Returns recently stored unique values: document ids, and values of the last field of each unique index. */
async function uniqueValues(): Promise<string[]> {
  const { collections } = cores.core.database
  const places = [
    ...Object.keys(collections).map((name) => [name, '_id'] as const),
    ...indexes.flatMap(({ collection, wanted }) =>
      wanted.flatMap(({ unique, key }) => (unique ? [[collection, Object.keys(key).at(-1)!] as const] : [])),
    ),
  ]
  const found = places.map(async ([name, field]) => {
    const collection = collections[name as keyof Collections] as unknown as Collection
    return (await collection.find().sort({ $natural: -1 }).limit(20).toArray()).map((document) => document[field])
  })
  return (await Promise.all(found)).flat().filter((value) => typeof value === 'string')
}

interface Scene {
  session: SessionContent
  /**
   * Operations done so far. Each entry has the name of a function in `choosers` and the value that it used as key.
   */
  used: Set<string>
  assignments: number
}

type Chooser = (scene: Scene, value: string) => Promise<boolean>

/**
 * Operations whose idempotency key a client chooses. Each runs with the given value as its key, and
 * returns whether the service treated it as a repeat.
 */
const choosers: Record<string, Chooser> = {
  'visitor message': async ({ session }, key) => (await cores.send(session, 'x', { key })).replayed,
  'agent message': async ({ session: { conversationId } }, clientOperationId) =>
    (await sendAsAgent(cores.core, { conversationId, clientOperationId, body: 'x' })).replayed,
  form: async ({ session }, idempotencyKey) =>
    (await submitForm(cores.core, { ...credentialsOf(session), form: 'offline', fields: {}, idempotencyKey })).replayed,
  async rating({ session, used }, idempotencyKey) {
    if (!used.has(`rating ${idempotencyKey}`)) {
      await cores.send(session, 'x')
      await closeConversation(cores.core, session.conversationId, undefined, true)
    }
    return (await giveRating(cores.core, { ...credentialsOf(session), score: 5, idempotencyKey })).replayed
  },
  page: async ({ session }, idempotencyKey) =>
    (await reportPage(cores.core, { ...credentialsOf(session), pageContext: { url: site }, idempotencyKey })).replayed,
  panel: async ({ session }, idempotencyKey) =>
    (await closeSession(cores.core, { ...credentialsOf(session), scope: 'panel', idempotencyKey })).replayed,
  navigation: async ({ session: { sessionId } }, clientOperationId) =>
    (await requestNavigation(cores.core, { sessionId, url: `${site}/a`, clientOperationId }, operator)).replayed,
  'delivery of a lead': async (_, idempotencyKey) =>
    (await createAttempt(cores.core, { leadId, subscriptionId, idempotencyKey }, operator)).existing,
  /** Uses the value as a nonce. Skips a value used before, because a nonce is valid only once. */
  async identification(_, value) {
    const jti = value.padEnd(8, '.')
    if (usedOnSite.has(`identification ${value}`)) return true
    const session = await cores.newSession(cores.core, value)
    await cores.identify(session, await cores.sign({ sub: value, jti }), { key: value })
    return false
  },
}
/** Operations whose keys must be unique on the site, not only in one conversation. */
const siteWide = new Set(['delivery of a lead', 'identification'])
const usedOnSite = new Set<string>()

/** Operations whose keys the service generates, and the type of the event that each appends. */
const writers: Record<string, { type: EventType; act(scene: Scene): Promise<unknown> }> = {
  navigation: {
    type: 'navigation.requested',
    act: ({ session: { sessionId } }) => requestNavigation(cores.core, { sessionId, url: `${site}/b` }, operator),
  },
  screenshot: {
    type: 'screenshot.cancelled',
    async act({ session: { sessionId } }) {
      const { content } = await requestScreenshot(cores.core, { sessionId }, operator)
      await cancelCommand(cores.core, content.commandId, operator)
    },
  },
  assignment: {
    type: 'agent.assigned',
    act(scene) {
      scene.assignments += 1
      const agent = { displayName: `agent ${scene.assignments}` }
      return assignAgent(cores.core, scene.session.conversationId, agent, undefined)
    },
  },
  state: {
    type: 'message.state.changed',
    async act({ session, used }) {
      const { conversationId } = session
      const key = randomUUID()
      used.add(`visitor message ${key}`)
      await cores.send(session, 'x', { key })
      await updateMessageStates(cores.core, { conversationId, upToSequence: 2 ** 31 - 1, state: 'read' }, undefined)
    },
  },
  typing: {
    type: 'typing.stopped',
    async act({ session }) {
      for (const state of ['started', 'stopped'] as const)
        await setTypingOfVisitor(cores.core, credentialsOf(session).credentials, state)
    },
  },
}

const credentialsOf = ({ accessGrant }: SessionContent) => ({ credentials: { accessGrant, origin: site } })

const countOf = ({ session: { conversationId } }: Scene, type: EventType) =>
  cores.core.database.collections.events.countDocuments({ conversationId, type })

/**
 * Returns values that a client may choose as keys: stored unique values, their parts between
 * spaces, and names of events.
 */
async function choosable(): Promise<string[]> {
  const values = await uniqueValues()
  const types = ['session.revoked', 'session.identified', 'session.closed', 'visitor.banned', 'assignment', 'agent']
  const words = values.flatMap((value) => [value, ...value.split(' ')])
  return [...new Set([...words, ...types])].filter((value) => operationId(value) === undefined)
}

const step = fc.oneof(
  fc.record({ choose: fc.constantFrom(...Object.keys(choosers)), pick: fc.nat() }),
  fc.record({ write: fc.constantFrom(...Object.keys(writers)) }),
)

async function choose(scene: Scene, chooser: string, value: string) {
  const used = siteWide.has(chooser) ? usedOnSite : scene.used
  const name = `${chooser} ${value}`
  const replayed = await choosers[chooser]!(scene, value)
  expect({ name, replayed }).toEqual({ name, replayed: used.has(name) })
  used.add(name)
}

async function write(scene: Scene, writer: string) {
  const { type, act } = writers[writer]!
  const before = await countOf(scene, type)
  await act(scene)
  expect(await countOf(scene, type)).toBeGreaterThan(before)
}

/** Expects that the service can still end the session and its stream. */
async function endSession({ session }: Scene, stream: Awaited<ReturnType<TestCores['openStream']>>) {
  await revokeSession(cores.core, session.sessionId)
  await until('the end of the stream', () => stream.ended)
  expect(stream.types.at(-1)).toBe('session.revoked')
}

const newScene = async (): Promise<Scene> => ({ session: await cores.newSession(), used: new Set(), assignments: 0 })

it('an operation is not treated as a repeat if the key that a client chose equals a value that the service generated', async () => {
  const before = new Set(await choosable())
  const scene = await newScene()
  const stream = await cores.openStream(scene.session)
  for (const writer of Object.keys(writers)) await write(scene, writer)
  const made = (await choosable()).filter((value) => !before.has(value) || value.includes('.'))
  expect(made.length).toBeGreaterThan(15)
  for (const chooser of Object.keys(choosers)) for (const value of someOf(made, 6)) await choose(scene, chooser, value)
  for (const writer of Object.keys(writers)) await write(scene, writer)
  await endSession(scene, stream)
})

it('keys that clients choose never conflict with keys that the service generates, in any order of operations', async () => {
  await forAllAsync([fc.array(step, { minLength: 4, maxLength: 14 })], runs(24), async (steps) => {
    const scene = await newScene()
    const stream = await cores.openStream(scene.session)
    let values = await choosable()
    for (const each of steps) {
      if ('choose' in each) await choose(scene, each.choose, values[each.pick % values.length]!)
      else {
        await write(scene, each.write)
        values = await choosable()
      }
    }
    await endSession(scene, stream)
  })
})
