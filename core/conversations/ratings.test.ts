import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { itLong } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import { feedReaderOf } from '../feed/feed-reader.ts'
import { logOf } from '../log/event-log.ts'
import { exportVisitor, visitorOfSession } from '../privacy/visitor-data.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { send, type TestVisitor, testCores } from '../test/cores.ts'
import { flushFeed } from '../test/feed.ts'
import { findInstallation, updateInstallation } from '../workspaces/workspaces.ts'
import { closeConversation } from './assignments.ts'
import { findConversation } from './conversation-access.ts'
import { inboxOf } from './inbox.ts'
import { listMessagesForVisitor } from './messages.ts'
import { giveRating } from './ratings.ts'
import { searchTexts } from './search.ts'

const cores = testCores({ count: 2, started: false })
const comment = 'quickandfriendly'

/** A visitor whose conversation was closed with a request for a rating. */
async function askedVisitor(settings = {}): Promise<TestVisitor> {
  const visitor = await cores.newVisitor(await cores.newSite(settings))
  await send(cores.core, visitor, 'hello')
  await close(visitor)
  return visitor
}

const close = ({ conversationId }: TestVisitor, core = cores.core) =>
  closeConversation(core, conversationId, undefined, true)

const rate = (
  { credentials }: TestVisitor,
  { core = cores.core as RunningCore, idempotencyKey = randomUUID() as string, score = 4, ...more } = {},
) => giveRating(core, { credentials, idempotencyKey, score, comment, ...more })

const typesOf = async ({ conversationId }: TestVisitor) =>
  (await cores.log(conversationId)).map(({ type }) => type).filter((type) => /rating|closed|reopened/.test(type))

const stateOf = async ({ credentials }: TestVisitor, core = cores.other) =>
  (await listMessagesForVisitor(core, credentials, {})).rating

const failsWith = (code: PublicErrorCode, rating: Promise<unknown>) => expect(rating).rejects.toMatchObject({ code })

it('each closing can have one request and one rating, and both cores show the state', async () => {
  const visitor = await cores.newVisitor(await cores.newSite())
  await send(cores.core, visitor, 'hello')
  await failsWith('RatingNotRequested', rate(visitor))
  await close(visitor)
  await close(visitor, cores.other)
  expect(await stateOf(visitor)).toBe('requested')
  const { event } = await rate(visitor, { core: cores.other })
  expect(event).toMatchObject({ type: 'rating.given', data: { score: 4, comment } })
  expect(await stateOf(visitor)).toBe('given')
  await close(visitor)
  expect(await typesOf(visitor)).toEqual(['conversation.closed', 'rating.requested', 'rating.given'])
  await failsWith('RatingAlreadyGiven', rate(visitor))

  await send(cores.other, visitor, 'more')
  expect(await stateOf(visitor)).toBeUndefined()
  await failsWith('RatingNotRequested', rate(visitor))
  await close(visitor, cores.other)
  await rate(visitor, { score: 1 })
  const { rating } = await findConversation(cores.core, visitor.conversationId, undefined)
  expect(rating).toEqual({ sequence: (await cores.log(visitor.conversationId)).at(-1)!.sequence, score: 1 })
  expect(JSON.stringify(await cores.core.database.collections.conversations.find().toArray())).not.toContain(comment)
})

it('of concurrent ratings at two cores, one is stored; its repeats return it, and the others are refused', async () => {
  const visitor = await askedVisitor()
  const keys = ['a', 'b', 'a', 'b', 'a', 'b', 'c', 'c']
  const results = await Promise.allSettled(
    keys.map((idempotencyKey, index) => rate(visitor, { idempotencyKey, core: cores.cores[index % 2]! })),
  )
  const given = results.flatMap((result, index) => (result.status === 'fulfilled' ? [keys[index]!] : []))
  expect(new Set(given).size).toBe(1)
  expect(given).toHaveLength(keys.filter((key) => key === given[0]).length)
  for (const result of results) if (result.status === 'rejected') expect(result.reason.code).toBe('RatingAlreadyGiven')
  expect(await typesOf(visitor)).toEqual(['conversation.closed', 'rating.requested', 'rating.given'])
})

it('a repeat with the same key gets the first answer, also after the conversation was reopened', async () => {
  const visitor = await askedVisitor()
  const first = await rate(visitor, { idempotencyKey: 'same' })
  await send(cores.core, visitor, 'again')
  const repeat = await rate(visitor, { idempotencyKey: 'same', core: cores.other })
  expect(repeat).toMatchObject({ replayed: true, event: { sequence: first.event.sequence } })
  await failsWith('IdempotencyConflict', rate(visitor, { idempotencyKey: 'same', score: 2 }))
})

it('a rating is refused if the capability is off, the score or comment is invalid, or consent is missing', async () => {
  const visitor = await askedVisitor()
  for (const invalid of [
    { score: 0 },
    { score: 6 },
    { comment: '' },
    { comment: 'a\nb' },
    { comment: 'x'.repeat(501) },
  ])
    await failsWith('ValidationFailed', rate(visitor, invalid))
  const { publicSiteKey } = visitor
  const consent = { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: '1' }
  await updateInstallation(cores.core, publicSiteKey, { consent }, undefined)
  await failsWith('ConsentRequired', rate(visitor))
  await updateInstallation(cores.core, publicSiteKey, { capabilities: { rating: false } }, undefined)
  await failsWith('RouteNotAdvertised', rate(visitor))
})

it('a closing that asks for a rating is refused without the capability before it closes', async () => {
  const visitor = await cores.newVisitor(await cores.newSite({ capabilities: { rating: false } }))
  await send(cores.core, visitor, 'hello')
  await failsWith('RouteNotAdvertised', close(visitor))
  expect(await typesOf(visitor)).toEqual([])
  await closeConversation(cores.core, visitor.conversationId, undefined)
  expect(await typesOf(visitor)).toEqual(['conversation.closed'])
})

it('a stored installation without the capability has it', async () => {
  const { publicSiteKey } = await cores.newSite()
  const { installations } = cores.core.database.collections
  await installations.updateOne({ _id: publicSiteKey }, { $unset: { 'capabilities.rating': '' } })
  expect(await findInstallation(cores.other, publicSiteKey, undefined)).toMatchObject({
    capabilities: { rating: true },
  })
})

itLong('if the core dies at any write, a repeat at another core closes, asks and rates once', async () => {
  await cores.untilOneSurvives(async (mortal, writes) => {
    const visitor = await cores.newVisitor(await cores.newSite())
    await send(cores.core, visitor, 'hello')
    let died = false
    const note = () => {
      died = true
    }
    await close(visitor, mortal).catch(note)
    await close(visitor)
    const idempotencyKey = `rating-${writes}`
    await rate(visitor, { core: mortal, idempotencyKey }).catch(note)
    await rate(visitor, { core: cores.other, idempotencyKey })
    expect(await typesOf(visitor)).toEqual(['conversation.closed', 'rating.requested', 'rating.given'])
    expect(await findConversation(cores.core, visitor.conversationId, undefined)).toMatchObject({
      status: 'closed',
      rating: { score: 4 },
    })
    return died
  })
})

it('if a process dies after it stored a rating, another process updates the conversation', async () => {
  const visitor = await askedVisitor()
  const { conversationId } = visitor
  await logOf(cores.core).append({ conversationId, type: 'rating.given', data: { score: 2 } })
  await inboxOf(cores.other).reconcile()
  expect(await findConversation(cores.core, conversationId, undefined)).toMatchObject({
    status: 'closed',
    rating: { score: 2 },
  })
})

it('the comment is in the feed and the export, and in no search', async () => {
  const visitor = await askedVisitor()
  const { workspaceId, sessionId, conversationId } = visitor
  await rate(visitor)
  await flushFeed(cores.core)
  await searchIndexOf(cores.core).flush()
  const wait = { waitMs: 0, signal: AbortSignal.timeout(60_000) }
  const { events } = await feedReaderOf(cores.core).read({ workspaceId, cursor: '', types: ['rating.given'] }, wait)
  expect(events).toMatchObject([{ event: { data: { score: 4, comment } } }])
  const lines = []
  const name = await visitorOfSession(cores.core, sessionId, undefined)
  for await (const line of exportVisitor(cores.core, name)) lines.push(line)
  expect(lines.join()).toContain(comment)
  const found = await searchTexts(cores.core, {
    workspaceId,
    kinds: ['message', 'note', 'lead', 'visitor'],
    query: comment,
  })
  expect(found.results).toEqual([])
  expect(await cores.core.database.collections.searchEntries.findOne({ terms: comment })).toBeNull()
  expect(await cores.core.database.collections.events.countDocuments({ conversationId, 'data.comment': comment })).toBe(
    1,
  )
})
