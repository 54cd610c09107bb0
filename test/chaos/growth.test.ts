import { expect, it } from 'vitest'
import { growthOf, isTooMuch, type Sample } from './growth.ts'

const samples = (of: (index: number) => Partial<Sample>): Sample[] =>
  Array.from({ length: 30 }, (_, index) => ({ residentMb: 100, handles: 50, sockets: 30, ...of(index) }))

it('what goes up and down is flat', () => {
  const growth = growthOf(samples((index) => ({ residentMb: 100 + (index % 3) * 60, sockets: 30 + (index % 4) * 50 })))
  expect(growth).toEqual({ residentMb: 0, handles: 0, sockets: 0 })
  expect(isTooMuch(growth)).toBe(false)
})

it('what grew before the second third was warming up', () => {
  expect(isTooMuch(growthOf(samples((index) => ({ residentMb: Math.min(index, 10) * 50 }))))).toBe(false)
})

it.each<[string, (index: number) => Partial<Sample>]>([
  ['memory', (index) => ({ residentMb: 100 + index * 10 })],
  ['handles', (index) => ({ handles: 50 + index * 5 })],
  ['sockets', (index) => ({ sockets: 30 + index * 5 })],
])('%s that grows to the end is too much', (_name, of) => {
  expect(isTooMuch(growthOf(samples(of)))).toBe(true)
})
