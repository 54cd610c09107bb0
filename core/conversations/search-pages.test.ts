import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type EntryQuery, type FoundEntry, searchEntriesOf } from '../search/search-entry-store.ts'
import { bareCore } from '../test/core-with.ts'
import { searchTexts, sourceTextsOf } from './search.ts'

/** What an entry represents: a text, a text that was removed, or one of several sessions of one visitor. */
const kinds = fc.constantFrom('text', 'removed', 'visitor')
const conversationsOf = ({ _id: { $in: ids } }: { _id: { $in: string[] } }) => ({
  toArray: async () => ids.map((_id) => ({ _id, workspaceId: 'ws', epoch: 'e1' })),
})

function coreOf(entries: (FoundEntry & { isRemoved: boolean })[]) {
  const removed = new Set(entries.filter(({ isRemoved }) => isRemoved).map(({ place }) => place.id))
  const after = (place: { id: string } | undefined) =>
    place ? entries.slice(entries.findIndex((each) => each.place.id === place.id) + 1) : entries
  const core = bareCore({ db: { conversations: { find: conversationsOf } }, history: 'h1' })
  searchEntriesOf.set(core, {
    count: async () => entries.length,
    matchesOf: async (query: EntryQuery) => after(query.after),
    matchesAmongNext: async (query: EntryQuery, limit: number) => {
      const found = after(query.after).slice(0, limit)
      return { found, end: found.length === limit ? found.at(-1)!.place : undefined }
    },
  } as never)
  sourceTextsOf.set(core, async (sources) =>
    sources.map((source) => {
      const id = source.kind === 'message' ? `${source.sequence}` : 'visitor'
      return removed.has(id) ? undefined : { texts: [source.kind === 'visitor' ? 'Anna' : `Anna ${id}`] }
    }),
  )
  return core
}

it('a search returns every text on exactly one page, even between removed texts and many sessions of one visitor', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(kinds, fc.integer({ min: 1, max: 60 })), { maxLength: 12 }),
      fc.integer({ min: 1, max: 50 }),
      async (groups, limit) => {
        const entries = groups
          .flatMap(([kind, times]) => Array.from({ length: times }, () => kind))
          .map((kind, index) => ({
            place: { at: new Date(1_000_000 - index), id: `${index}` },
            source:
              kind === 'visitor'
                ? { kind: 'visitor' as const, conversationId: 'cnv', sessionId: `ses${index}` }
                : { kind: 'message' as const, conversationId: 'cnv', sequence: index },
            isRemoved: kind === 'removed',
          }))
        const core = coreOf(entries)
        const found: string[] = []
        for (let pageToken: string | undefined, isFirst = true; isFirst || pageToken; isFirst = false) {
          const page = await searchTexts(core, {
            workspaceId: 'ws',
            kinds: ['message', 'visitor'],
            query: 'anna',
            limit,
            pageToken,
          })
          expect(page.results.length).toBeLessThanOrEqual(limit)
          const onPage = page.results.map(({ snippet }) => snippet.text)
          expect(onPage.filter((text) => text === 'Anna').length).toBeLessThanOrEqual(1)
          found.push(...onPage)
          pageToken = page.nextPageToken
        }
        const texts = entries.filter(({ source, isRemoved }) => source.kind === 'message' && !isRemoved)
        expect(found.filter((text) => text !== 'Anna')).toEqual(texts.map(({ place }) => `Anna ${place.id}`))
        expect(found.includes('Anna')).toBe(entries.some(({ source }) => source.kind === 'visitor'))
      },
    ),
  )
})
