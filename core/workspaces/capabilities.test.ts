import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { imageOf } from '../../test/support/images.ts'
import { itLong } from '../../test/support/is-long.ts'
import { findSession } from '../bans/bans.ts'
import {
  acknowledgeNavigation,
  acknowledgeScreenshot,
  cancelCommand,
  findCommand,
  requestNavigation,
  requestScreenshot,
} from '../commands/commands.ts'
import { uploadScreenshot } from '../commands/screenshots.ts'
import { sendAsVisitor } from '../conversations/messages.ts'
import { setTypingOfAgent, setTypingOfVisitor } from '../conversations/typing.ts'
import { submitForm } from '../deliveries/lead-capture.ts'
import { codeOf, hasFailed, type TestVisitor, testCores } from '../test/cores.ts'
import { site } from '../test/visitor-credentials.ts'
import { createSession, reportPage } from '../visitors/sessions.ts'
import type { Capabilities } from './model.ts'
import { installationFor, updateInstallation } from './workspaces.ts'

const cores = testCores({ count: 2 })
const key = () => randomUUID() as string
const pageContext = { url: `${site}/cart` }
const operator = { subject: 'desk' }

/** Creates a site with a visitor who has written a message. */
async function newChat() {
  const at = await cores.newSite()
  const visitor = await cores.newVisitor(at)
  await cores.send(visitor, 'Hello')
  /** Sets capabilities on the other core. Resolves when the first core uses them. */
  async function set(capabilities: Partial<Capabilities>) {
    await updateInstallation(cores.other, at.publicSiteKey, { capabilities }, undefined)
    await expect
      .poll(async () => (await installationFor(cores.core, at.publicSiteKey, site)).capabilities)
      .toMatchObject(capabilities)
  }
  return { at, visitor, set }
}

const pageOf = async ({ sessionId }: { sessionId: string }) => (await findSession(cores.core, sessionId)).pageContext

const acknowledge = ({ credentials }: TestVisitor, commandId: string, outcome: string, idempotencyKey = key()) =>
  acknowledgeNavigation(cores.core, { credentials, commandId, outcome, idempotencyKey })

const consent = ({ credentials }: TestVisitor, requestId: string) =>
  acknowledgeScreenshot(cores.core, {
    credentials,
    requestId,
    consent: 'granted',
    idempotencyKey: key(),
  })

const upload = (
  { credentials }: TestVisitor,
  requestId: string,
  {
    chunks = pngChunks(),
    idempotencyKey = key(),
  }: { chunks?: AsyncIterable<Uint8Array>; idempotencyKey?: string } = {},
) => uploadScreenshot(cores.core, { credentials, requestId, contentType: 'image/png', idempotencyKey }, chunks)

const picture = imageOf('image/png', 4000)

async function* pngChunks(between?: () => Promise<unknown>) {
  yield picture.subarray(0, 2000)
  await between?.()
  yield picture.subarray(2000)
}

describe('with the capability `pageContext` off', () => {
  it('no page is stored from a report, a message or a new session', async () => {
    const { at, visitor, set } = await newChat()
    await set({ pageContext: false })
    const { credentials } = visitor
    expect(await codeOf(reportPage(cores.core, { credentials, pageContext }))).toBe('RouteNotAdvertised')
    const message = { credentials, clientOperationId: key(), body: 'Hi', contentType: 'text', pageContext }
    await sendAsVisitor(cores.core, message)
    const request = { publicSiteKey: at.publicSiteKey, origin: site, clientInstanceId: key(), pageContext }
    const { content } = await createSession(cores.core, { ...request, idempotencyKey: key() })
    expect(await pageOf(content)).toBeUndefined()
    expect(await pageOf(visitor)).toBeUndefined()
    await set({ pageContext: true })
    await sendAsVisitor(cores.core, { ...message, clientOperationId: key() })
    await expect.poll(() => pageOf(visitor)).toEqual(pageContext)
  })

  it('an identification does not copy the page of the anonymous session', async () => {
    const { at, visitor, set } = await newChat()
    await reportPage(cores.core, { credentials: visitor.credentials, pageContext })
    await set({ pageContext: false })
    expect(await pageOf(await cores.identify(visitor, at.sign()))).toBeUndefined()
  })
})

describe('with the capability `identity` off', () => {
  it('an existing session is not identified, and a verified visitor can still log out', async () => {
    const { at, visitor, set } = await newChat()
    const verified = await cores.identify(await cores.newVisitor(at), at.sign())
    await set({ identity: false })
    expect(await codeOf(cores.identify(visitor, at.sign()))).toBe('RouteNotAdvertised')
    expect((await findSession(cores.core, visitor.sessionId)).identity).toBeUndefined()
    expect((await cores.clear(verified)).identityState).toBe('anonymous')
  })

  it('a repeat of an identification that succeeded while the capability was on returns the first result', async () => {
    const { at, visitor, set } = await newChat()
    const [assertion, same] = [at.sign(), key()]
    const first = await cores.identify(visitor, assertion, { key: same })
    await set({ identity: false })
    expect((await cores.identify(visitor, assertion, { key: same })).sessionId).toBe(first.sessionId)
  })

  itLong(
    'a repeat completes an interrupted identification only if that identification has replaced the session',
    async () => {
      await cores.untilOneSurvives(async (mortal) => {
        const { at, visitor, set } = await newChat()
        const [assertion, same] = [at.sign(), key()]
        const died = await hasFailed(cores.identify(visitor, assertion, { core: mortal, key: same }))
        await set({ identity: false })
        cores.advance(16)
        const { successor } = await findSession(cores.core, visitor.sessionId)
        const repeated = await codeOf(cores.identify(visitor, assertion, { key: same }))
        expect(repeated).toBe(successor ? 'ok' : 'RouteNotAdvertised')
        return died
      })
    },
  )
})

it('with the capability `typing` off neither side is shown as typing', async () => {
  const { visitor, set } = await newChat()
  await set({ typing: false })
  const { conversationId, credentials } = visitor
  expect(await codeOf(setTypingOfVisitor(cores.core, credentials, 'started'))).toBe('RouteNotAdvertised')
  const agent = { displayName: 'Ada' }
  const byAgent = () => setTypingOfAgent(cores.core, { conversationId, state: 'started', agent }, undefined)
  expect(await codeOf(byAgent())).toBe('RouteNotAdvertised')
  await set({ typing: true })
  expect(await codeOf(byAgent())).toBe('ok')
})

describe('with the capability `navigation` off', () => {
  it('a new command is refused, and so is the visitor’s decision about a pending one', async () => {
    const { visitor, set } = await newChat()
    const { sessionId } = visitor
    const request = { sessionId, url: `${site}/a`, clientOperationId: 'first' }
    const { content } = await requestNavigation(cores.core, request, operator)
    await set({ navigation: false })
    const { clientOperationId: _, ...another } = request
    expect(await codeOf(requestNavigation(cores.core, another, operator))).toBe('RouteNotAdvertised')
    expect((await requestNavigation(cores.core, request, operator)).replayed).toBe(true)
    for (const outcome of ['accepted', 'declined', 'unsupported'])
      expect(await codeOf(acknowledge(visitor, content.commandId, outcome))).toBe('RouteNotAdvertised')
    expect((await cancelCommand(cores.core, content.commandId, operator)).state).toBe('cancelled')
  })

  it('the outcome of a navigation that the visitor has accepted is recorded', async () => {
    const { visitor, set } = await newChat()
    const request = { sessionId: visitor.sessionId, url: `${site}/a` }
    const { commandId } = (await requestNavigation(cores.core, request, operator)).content
    const same = key()
    await acknowledge(visitor, commandId, 'accepted', same)
    await set({ navigation: false })
    expect((await acknowledge(visitor, commandId, 'accepted', same)).replayed).toBe(true)
    expect((await acknowledge(visitor, commandId, 'completed')).content.state).toBe('completed')
  })

  it('a repeated request does not announce a command whose process died before the announcement', async () => {
    const { visitor, set } = await newChat()
    const request = { sessionId: visitor.sessionId, url: `${site}/a`, clientOperationId: 'first' }
    const mortal = cores.mortalCore(1)
    expect(await codeOf(requestNavigation(mortal, request, operator))).not.toBe('ok')
    await set({ navigation: false })
    expect(await codeOf(requestNavigation(cores.core, request, operator))).toBe('ok')
    const types = (await cores.log(visitor.conversationId)).map(({ type }) => type)
    expect(types).not.toContain('navigation.requested')
  })
})

describe('with the capability `screenshots` off', () => {
  it('a new request, a consent and the upload of a granted screenshot are refused', async () => {
    const { visitor, set } = await newChat()
    const { sessionId } = visitor
    const ask = () => requestScreenshot(cores.core, { sessionId }, operator)
    const [pending, granted] = [(await ask()).content.commandId, (await ask()).content.commandId]
    await consent(visitor, granted)
    await set({ screenshots: false })
    expect(await codeOf(ask())).toBe('RouteNotAdvertised')
    expect(await codeOf(consent(visitor, pending))).toBe('RouteNotAdvertised')
    expect(await codeOf(upload(visitor, granted))).toBe('RouteNotAdvertised')
  })

  it('a running upload stores nothing, and a repeat of a finished upload returns the first result', async () => {
    const { visitor, set } = await newChat()
    const ask = async () =>
      (await requestScreenshot(cores.core, { sessionId: visitor.sessionId }, operator)).content.commandId
    const [slow, done] = [await ask(), await ask()]
    await consent(visitor, slow)
    await consent(visitor, done)
    const same = key()
    await upload(visitor, done, { idempotencyKey: same })
    const chunks = pngChunks(() => set({ screenshots: false }))
    expect(await codeOf(upload(visitor, slow, { chunks }))).toBe('RouteNotAdvertised')
    expect((await findCommand(cores.core, slow)).screenshot).toBeUndefined()
    expect((await upload(visitor, done, { idempotencyKey: same })).replayed).toBe(true)
  })
})

describe('with the capability of a form or the retry route off', () => {
  it('an existing session can no longer submit the form or use the retry route', async () => {
    const { visitor, set } = await newChat()
    const { credentials } = visitor
    const form = () => submitForm(cores.core, { credentials, form: 'offline', fields: {}, idempotencyKey: key() })
    const retry = () =>
      sendAsVisitor(cores.core, {
        credentials,
        clientOperationId: key(),
        body: 'Hi',
        contentType: 'text',
        retryRoute: true,
      })
    await set({ offlineForm: true, messageRetryRoute: true })
    expect([await codeOf(form()), await codeOf(retry())]).toEqual(['ok', 'ok'])
    await set({ offlineForm: false, messageRetryRoute: false })
    expect([await codeOf(form()), await codeOf(retry())]).toEqual(['RouteNotAdvertised', 'RouteNotAdvertised'])
  })
})
