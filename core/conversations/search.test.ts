import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { itLong, runs } from '../../test/support/is-long.ts'
import { captureLead } from '../deliveries/lead-capture.ts'
import { dataOf, hideData } from '../privacy/data-store.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { searchIndexOf } from '../search/search-index.ts'
import { codeOf, newSubject, type TestVisitor, testCores } from '../test/cores.ts'
import { finishErasures, flushAll, visitorOf } from '../test/visitor-marks.ts'
import { assignAgent, closeConversation } from './assignments.ts'
import { sendAsAgent } from './messages.ts'
import { addNote } from './notes.ts'
import { type SearchRequest, searchTexts } from './search.ts'

const cores = testCores({ started: false, count: 2 })
const agent = { displayName: 'Ada' }
let elsewhere: Awaited<ReturnType<typeof cores.newSite>>
beforeAll(async () => {
  elsewhere = await cores.newSite()
})

/** Returns a word that no other test uses. */
const newWord = () => `w${randomUUID().replaceAll('-', '')}`

async function find(query: string, request: Partial<SearchRequest> = {}, core = cores.other) {
  await flushAll(cores)
  return searchTexts(core, {
    workspaceId: cores.workspaceId,
    kinds: ['message', 'note', 'visitor', 'lead'],
    query,
    ...request,
  })
}

const snippetsOf = async (query: string, request: Partial<SearchRequest> = {}) =>
  (await find(query, request)).results.map(({ snippet }) => snippet.text)

const note = ({ conversationId }: TestVisitor, body: string) =>
  addNote(cores.core, { conversationId, clientOperationId: randomUUID(), body, agent }, undefined)

const lead = (conversationId: string | undefined, fields: Record<string, string>) =>
  captureLead(cores.core, { workspaceId: cores.workspaceId, source: 'crm', fields, conversationId }, undefined)

describe('a search', () => {
  it('finds messages of both sides, notes, leads and verified visitors', async () => {
    const word = newWord()
    const visitor = await cores.newVisitor()
    await cores.send(visitor, `Where is my ${word}?`)
    await sendAsAgent(cores.core, {
      conversationId: visitor.conversationId,
      clientOperationId: randomUUID(),
      body: `Your ${word} is here.`,
      agent,
    })
    await note(visitor, `${word} is late`)
    const leadId = await lead(visitor.conversationId, { email: `${word}@example.org` })
    const claims = { sub: newSubject(), name: `Mia ${word}`, ctx: { email: 'mia@example.net' } }
    const known = await cores.identify(await cores.newSession(), cores.sign(claims))
    await cores.send(known, 'hello')

    const { results } = await find(word)
    const { conversationId } = visitor
    expect(results.map(({ source }) => source)).toEqual(
      expect.arrayContaining([
        { kind: 'message', conversationId, sequence: 1 },
        { kind: 'message', conversationId, sequence: 2 },
        expect.objectContaining({ kind: 'note', conversationId }),
        { kind: 'lead', conversationId, leadId },
        // The sessions before and after the identification have the same identity and time.
        expect.objectContaining({ kind: 'visitor', conversationId: known.conversationId }),
      ]),
    )
    expect(results).toHaveLength(5)
    for (const one of [claims.sub, `mia@example.net ${word}`, `MIA ${word.slice(0, 20)}`])
      expect((await find(one)).results.map(({ conversation }) => conversation.conversationId)).toEqual([
        known.conversationId,
      ])
  })

  itLong('returns each match once, newest first, on pages of any size and with any filter', async () => {
    const [rare, visitors] = [newWord(), [await cores.newVisitor(), await cores.newVisitor(), await cores.newVisitor()]]
    const sent: string[] = []
    for (let index = 0; index < 12; index += 1) {
      sent.unshift(`${index} ${rare}`)
      await cores.send(visitors[index % 3]!, sent[0]!)
    }
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 13 }),
        fc.constantFrom(undefined, 'open' as const),
        async (limit, status) => {
          const found: string[] = []
          for (let pageToken: string | undefined, isFirst = true; isFirst || pageToken; isFirst = false) {
            const page = await find(rare, { limit, status, pageToken })
            expect(page.results.length).toBeLessThanOrEqual(limit)
            found.push(...page.results.map(({ snippet }) => snippet.text))
            pageToken = page.nextPageToken
          }
          expect(found).toEqual(sent)
        },
      ),
      runs(100, 5),
    )
  })

  it('filters by status, agent and time', async () => {
    const word = newWord()
    const [open, closed] = [await cores.newVisitor(), await cores.newVisitor()]
    await cores.send(open, `open ${word}`)
    await assignAgent(cores.core, open.conversationId, agent, undefined)
    const between = new Date(cores.now() + 1)
    cores.advance(1)
    await cores.send(closed, `closed ${word}`)
    await closeConversation(cores.core, closed.conversationId, undefined)
    expect(await snippetsOf(word, { status: 'closed' })).toEqual([`closed ${word}`])
    expect(await snippetsOf(word, { status: 'open' })).toEqual([`open ${word}`])
    expect(await snippetsOf(word, { assignee: { name: 'Ada' } })).toEqual([`open ${word}`])
    expect(await snippetsOf(word, { assignee: null })).toEqual([`closed ${word}`])
    expect(await snippetsOf(word, { assignee: { name: 'Bea' } })).toEqual([])
    expect(await snippetsOf(word, { from: between })).toEqual([`closed ${word}`])
    expect(await snippetsOf(word, { to: between })).toEqual([`open ${word}`])
  })

  it('finds nothing of another workspace', async () => {
    const word = newWord()
    const stranger = await cores.newVisitor(elsewhere)
    await cores.send(stranger, word)
    await note(stranger, word)
    expect(await snippetsOf(word)).toEqual([])
    expect(await snippetsOf(word, { workspaceId: elsewhere.workspaceId })).toHaveLength(2)
  })

  it.each(['', '   ', '🙂 ?!', 'a b c d e f g h i', 'x'.repeat(201)])('rejects the query “%s”', async (query) => {
    expect(await codeOf(find(query))).toBe('ValidationFailed')
  })

  it('treats a query of special characters as text', async () => {
    for (const query of ['.*', '^w', '$where', 'a(b', '[a-z]+', '\\p{L}', '{"$ne":1}', '⑴'])
      expect(['ok', 'ValidationFailed']).toContain(await codeOf(find(query)))
    expect(
      (await find('.*w').catch(() => ({ results: [] }))).results.every(({ snippet }) => /\bw/i.test(snippet.text)),
    ).toBe(true)
  })
})

describe('a search of some kinds of texts', () => {
  const readable = ['message', 'note'] as const
  /** Adds entries that only exist in the index, so that many of them cost little. */
  const addEntries = (word: string, count: number, idOf: (index: number) => string) =>
    cores.core.database.collections.searchEntries.insertMany(
      Array.from({ length: count }, (_, index) => ({
        _id: idOf(index),
        workspaceId: cores.workspaceId,
        at: new Date(Date.now() - index),
        terms: [word],
        conversationId: 'cnv_none',
      })),
    )

  it('answers for a word of another kind as for a word that no text has, also if many texts have it', async () => {
    const [rare, frequent] = [newWord(), newWord()]
    const known = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject(), name: rare }))
    await cores.send(known, 'hello')
    await lead(known.conversationId, { phone: rare })
    for (const kind of ['lead', 'ses']) await addEntries(frequent, 2500, (index) => `${kind}_${frequent}${index}`)
    const absent = await find(newWord(), { kinds: readable })
    expect(absent).toEqual({ results: [], nextPageToken: undefined })
    for (const word of [rare, frequent, rare.slice(0, 12)])
      expect(await find(word, { kinds: readable })).toEqual(absent)
    expect((await find(rare)).results.map(({ source }) => source.kind).sort()).toEqual(['lead', 'visitor'])
    expect((await find(rare, { kinds: [...readable, 'lead'] })).results).toMatchObject([{ source: { kind: 'lead' } }])
    expect((await find(rare, { kinds: [...readable, 'visitor'] })).results).toMatchObject([
      { source: { kind: 'visitor' } },
    ])
  })

  itLong('returns the same pages, whether or not texts of other kinds are between the results', async () => {
    const word = newWord()
    const visitor = await cores.newVisitor()
    for (let index = 0; index < 3; index += 1) await cores.send(visitor, `${index} ${word}`)
    await flushAll(cores)
    // With so many messages, a search reads the entries by time.
    await addEntries(word, 2100, (index) => `cnv_none:${index + 1}`)
    const pages = async () => {
      const found: unknown[] = []
      for (let pageToken: string | undefined, isFirst = true; isFirst || pageToken; isFirst = false) {
        const page = await find(word, { kinds: readable, limit: 2, pageToken })
        found.push(...page.results.map(({ snippet }) => snippet.text))
        pageToken = page.nextPageToken
        if (pageToken) expect(Buffer.from(pageToken, 'base64url').toString()).not.toMatch(/lead_|ses_/)
      }
      return found
    }
    const before = await pages()
    expect(before).toEqual([`2 ${word}`, `1 ${word}`, `0 ${word}`])
    await addEntries(word, 2100, (index) => `lead_${word}${index}`)
    expect(await pages()).toEqual(before)
  })
})

describe('a removed or hidden text', () => {
  itLong('is not found after an erasure at any time during the indexing, and no entry contains its words', async () => {
    await forAllAsync([fc.scheduler()], runs(40), async (scheduler) => {
      const word = newWord()
      const visitor = await cores.newVisitor()
      const slow = cores.scheduledCore(scheduler)
      const sending = scheduler.waitFor(cores.send(visitor, `first ${word}`, { core: slow }))
      await sending
      const indexing = scheduler.waitFor(searchIndexOf(slow).flush())
      await eraseVisitor(cores.core, await visitorOf(cores, visitor), 'desk')
      await indexing
      await finishErasures(cores)
      expect(await snippetsOf(word)).toEqual([])
      expect(await entriesWith(word)).toBe(0)
    })
  })

  it('is not found while its conversation is hidden or when its lead was removed', async () => {
    const word = newWord()
    const visitor = await cores.newVisitor()
    await cores.send(visitor, `message ${word}`)
    const leadId = await lead(visitor.conversationId, { name: `lead ${word}` })
    expect(await snippetsOf(word)).toHaveLength(2)
    for (const { remove } of dataOf.leads(cores.core, [leadId])) await remove(1)
    expect(await snippetsOf(word)).toEqual([`message ${word}`])
    expect(await entriesWith(word)).toBe(1)
    await hideData(cores.core, 'conversations', [visitor.conversationId], 'rmv_test')
    expect(await snippetsOf(word)).toEqual([])
  })
})

describe('the catch-up', () => {
  itLong('adds the entries that a dead core did not write; another run keeps the position', async () => {
    const word = newWord()
    const mortal = cores.mortalCore(Number.POSITIVE_INFINITY)
    const visitor = await cores.newVisitor()
    await cores.send(visitor, `lost ${word}`, { core: mortal })
    await cores.core.database.collections.searchEntries.deleteMany({ terms: word })
    expect(await snippetsOf(word)).toEqual([])
    cores.advance(200)
    await Promise.all(cores.cores.map((core) => searchIndexOf(core).catchUp()))
    expect(await snippetsOf(word)).toEqual([`lost ${word}`])
    const position = () => cores.core.db.followers.findOne({ _id: 'search' })
    const at = await position()
    await searchIndexOf(cores.core).catchUp()
    expect(await position()).toEqual(at)
  })

  it('adds entries of notes, leads and names that earlier versions stored', async () => {
    const word = newWord()
    const known = await cores.identify(await cores.newSession(), cores.sign({ sub: newSubject(), name: `Mia ${word}` }))
    await cores.send(known, 'hello')
    await lead(known.conversationId, { name: `lead ${word}` })
    await addNote(
      cores.core,
      { conversationId: known.conversationId, clientOperationId: randomUUID(), body: `note ${word}`, agent },
      undefined,
    )
    await flushAll(cores)
    await cores.core.database.collections.searchEntries.deleteMany({ terms: word })
    await cores.core.database.collections.followers.deleteMany({})
    cores.advance(200)
    const restarted = cores.mortalCore(Number.POSITIVE_INFINITY)
    await searchIndexOf(restarted).catchUp()
    expect((await snippetsOf(word)).sort()).toEqual([`lead ${word}`, `Mia ${word}`, `note ${word}`].sort())
  })
})

const entriesWith = (word: string) =>
  cores.core.database.collections.searchEntries.countDocuments({ terms: { $regex: `^${word}` } })
