import { expect, it } from 'vitest'
import { exceedsAllowance, grownCollections, growthOf, type Sample } from './growth.ts'

const samples = (of: (index: number) => Partial<Sample>): Sample[] =>
  Array.from({ length: 30 }, (_, index) => ({ usedMb: 100, handles: 50, sockets: 30, ...of(index) }))

it('fluctuating samples are not reported as growth', () => {
  const growth = growthOf(samples((index) => ({ usedMb: 100 + (index % 3) * 60, sockets: 30 + (index % 4) * 50 })))
  expect(growth).toEqual({ usedMb: 0, handles: 0, sockets: 0 })
  expect(exceedsAllowance(growth)).toBe(false)
})

it('growth in the first third of the samples is ignored as warm-up', () => {
  expect(exceedsAllowance(growthOf(samples((index) => ({ usedMb: Math.min(index, 10) * 50 }))))).toBe(false)
})

it.each<[string, (index: number) => Partial<Sample>]>([
  ['memory', (index) => ({ usedMb: 100 + index * 10 })],
  ['handles', (index) => ({ handles: 50 + index * 5 })],
  ['sockets', (index) => ({ sockets: 30 + index * 5 })],
])('steady growth of %s exceeds the allowance', (_name, of) => {
  expect(exceedsAllowance(growthOf(samples(of)))).toBe(true)
})

const documents = (of: (index: number) => Record<string, number>) => Array.from({ length: 30 }, (_, index) => of(index))

it('collections may grow with the events, and vary', () => {
  const grown = grownCollections(
    documents((index) => ({ events: index * 100, feedEntries: index * 110, typing: index % 20, locks: 1 })),
  )
  expect(grown).toEqual({})
})

it('documents that no event explains are reported as growth', () => {
  const grown = grownCollections(
    documents((index) => ({ events: index * 100, sessions: index * 50, typing: index * 3, keys: index })),
  )
  expect(grown).toEqual({ sessions: 500, typing: 30 })
})
