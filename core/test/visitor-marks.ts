import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { imageOf } from '../../test/support/images.ts'
import { testClient } from '../../test/support/test-database.ts'
import { findSession } from '../bans/bans.ts'
import { acknowledgeScreenshot, requestNavigation, requestScreenshot } from '../commands/commands.ts'
import { uploadScreenshot } from '../commands/screenshots.ts'
import { closeConversation } from '../conversations/assignments.ts'
import { sendAsAgent, sendAsVisitor } from '../conversations/messages.ts'
import { giveRating } from '../conversations/ratings.ts'
import { addTag } from '../conversations/tags.ts'
import { setTypingOfVisitor } from '../conversations/typing.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { createSubscription } from '../deliveries/subscriptions.ts'
import { conversationFeedOf } from '../feed/conversation-feed.ts'
import { runDueRemovals } from '../privacy/removals.ts'
import { visitorOfSession } from '../privacy/visitor-data.ts'
import { searchIndexOf } from '../search/search-index.ts'
import type { SessionContent } from '../sessions/model.ts'
import { createSession, reportPage } from '../visitors/sessions.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { updateInstallation } from '../workspaces/workspaces.ts'
import { append } from './bots.ts'
import type { TestCores } from './cores.ts'
import { site } from './visitor-credentials.ts'

/** Enables the forms of the site, and creates a subscription for their leads. */
export async function acceptForms({
  core,
  publicSiteKey,
  workspaceId,
}: Pick<TestCores, 'core' | 'publicSiteKey' | 'workspaceId'>) {
  const field = { name: 'email', label: 'Mail', type: 'text', required: false, maxLength: 200 } as const
  const settings = {
    capabilities: { preChatForm: true, offlineForm: true },
    forms: { preChat: [field], offline: [field] },
  }
  await updateInstallation(core, publicSiteKey, settings, undefined)
  const destination = { workspaceId, destinationUrl: 'https://93.184.216.34/hook', mappedFields: ['email'] }
  await createSubscription(core, { ...destination, automatic: true }, { subject: 'desk' })
}

/** Creates data of a visitor, with a unique text (mark) in every field that a visitor can fill. */
export async function plantMarks(cores: TestCores, { verified }: { verified: boolean }) {
  const { core, workspaceId } = cores
  const marks: string[] = []
  const mark = (name: string) => {
    const text = `${name}${randomUUID().replaceAll('-', '')}`
    marks.push(text)
    return text
  }
  const page = (name: string) => ({
    url: `https://shop.example/${mark(`${name}url`)}`,
    title: mark(`${name}title`),
    referrer: `https://${mark(`${name}r`)}.example/path`,
  })
  const { content: created } = await createSession(core, {
    publicSiteKey: cores.publicSiteKey,
    origin: site,
    clientInstanceId: mark('browser'),
    locale: 'gsw-CH',
    pageContext: page('created'),
    idempotencyKey: mark('createkey'),
  })
  let session = created
  const externalSubject = mark('sub')
  const claims = { sub: externalSubject, name: mark('name'), ctx: { [mark('key')]: mark('value') }, jti: mark('nonce') }
  if (verified) {
    // Creates an earlier session of the same person. `session` continues the conversation of this earlier session.
    const first = await cores.identify(await cores.newSession(), cores.sign({ ...claims, jti: mark('firstnonce') }))
    await cores.send(first, mark('elsewhere'))
    session = await cores.identify(created, cores.sign(claims), { key: mark('identifykey') })
  }
  const { sessionId, conversationId, accessGrant } = session
  const credentials = { accessGrant, origin: site }
  await sendAsVisitor(core, {
    credentials,
    clientOperationId: mark('operation'),
    body: mark('body'),
    contentType: 'text',
    pageContext: page('message'),
  })
  await sendAsAgent(core, { conversationId, clientOperationId: mark('agentoperation'), body: mark('answer') })
  const replies = { done: true, quickReplies: [mark('quick')] }
  await append(core, session, mark('grownoperation'), 0, mark('grown'), replies)
  await append(core, session, mark('growingoperation'), 0, mark('growing'))
  await addTag(core, conversationId, mark('tag'), undefined)
  await reportPage(core, { credentials, pageContext: page('report'), idempotencyKey: mark('pagekey') })
  await setTypingOfVisitor(core, credentials, 'started')
  for (const form of ['preChat', 'offline'] as const)
    await submitForm(core, { credentials, form, fields: { email: mark(form) }, idempotencyKey: mark('formkey') })
  await captureLead(core, { workspaceId, source: 'crm', fields: { note: mark('note') }, conversationId }, undefined)
  const desk = { subject: 'desk' }
  const { content: asked } = await requestScreenshot(core, { sessionId, purpose: mark('purpose') }, desk)
  const requestId = asked.commandId
  const consent = { credentials, requestId, consent: 'granted', idempotencyKey: mark('consentkey') }
  await acknowledgeScreenshot(core, consent)
  const image = Buffer.concat([imageOf('image/png', 100), Buffer.from(mark('pixels').repeat(3000))])
  const upload = { credentials, requestId, contentType: 'image/png', idempotencyKey: mark('uploadkey') }
  await uploadScreenshot(
    core,
    upload,
    (async function* () {
      yield image
    })(),
  )
  await requestNavigation(core, { sessionId, url: `${site}/${mark('target')}` }, desk)
  await closeConversation(core, conversationId, undefined, true)
  await giveRating(core, { credentials, score: 4, comment: mark('comment'), idempotencyKey: mark('ratingkey') })
  return { session, created, externalSubject, marks }
}

export const visitorOf = (cores: TestCores, { sessionId }: SessionContent) =>
  visitorOfSession(cores.core, sessionId, undefined)

export async function idsOf(cores: TestCores, { session, created }: Awaited<ReturnType<typeof plantMarks>>) {
  const found = await Promise.all([session, created].map(({ sessionId }) => findSession(cores.core, sessionId)))
  return found.flatMap(({ sessionId, conversationId, visitorId, identity }) => [
    sessionId,
    conversationId,
    visitorId,
    ...(identity ? [identity.subjectId] : []),
  ])
}

/** Returns the places in all collections that contain one of the texts, also encoded in base64. */
export async function placesOfTexts({ name }: TestCores, texts: string[]): Promise<string[]> {
  const needles = texts.flatMap((text) => [Buffer.from(text), Buffer.from(Buffer.from(text).toString('base64'))])
  const places = new Set<string>()
  for (const collection of await testClient().db(name).collections()) {
    const documents = (await collection.find({}, { raw: true }).toArray()) as unknown as Buffer[]
    for (const bytes of documents) {
      for (const [index, needle] of needles.entries())
        if (bytes.includes(needle)) places.add(`${collection.collectionName}: ${texts[index >> 1]}`)
    }
  }
  return [...places]
}

/**
 * Writes the search entries, feed entries and wake-ups of all events. Tests must call this before they
 * advance the clock. In production, all are written long before data is removed.
 */
export const flushAll = ({ cores, opened }: Pick<TestCores, 'cores' | 'opened'>) =>
  Promise.all([
    ...cores.flatMap((core) => [searchIndexOf(core).flush(), conversationFeedOf(core).flush()]),
    ...opened.map((core) => wakeupsOf(core).flush()),
  ])

/**
 * Runs steps until every erasure is finished. Each round advances the clock to the time of the next step, or to the
 * end of a dead process's lease. The number of rounds varies, because a core's own job may run steps too.
 */
export async function finishErasures(cores: TestCores, core = cores.core) {
  const { erasures } = core.database.collections
  const unfinished = { stage: { $ne: 'finished' as const } }
  for (let round = 0; round < 100; round += 1) {
    const [next] = await erasures.find(unfinished).sort({ nextAt: 1 }).limit(1).toArray()
    if (!next) return
    await flushAll(cores)
    cores.advance(Math.max(0, next.nextAt!.getTime() - cores.now()) / 1000)
    await runDueRemovals(core)
  }
  expect(await erasures.find(unfinished).toArray()).toEqual([])
}
