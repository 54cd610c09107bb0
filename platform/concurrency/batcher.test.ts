import { describe, expect, test } from 'vitest'
import { createBatcher, createBatchLoader } from './batcher.ts'

const fulfilled = <T>(value: T) => ({ status: 'fulfilled', value }) as const

describe('batchers', () => {
  test('a batcher combines items that arrive while calls are in progress into the next call', async () => {
    const calls: { items: number[]; answer: () => void }[] = []
    const batcher = createBatcher<number, number>(async (items) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      calls.push({ items, answer: resolve })
      await promise
      return items.map((item) => fulfilled(item * 10))
    })
    const first = [batcher.add(1), batcher.add(2)]
    await null
    const second = batcher.add(3)
    await null
    const third = [batcher.add(4), batcher.add(5)]
    await null
    expect(calls.map(({ items }) => items)).toEqual([[1, 2], [3]])
    expect(batcher.waiting()).toBe(2)
    for (const { answer } of calls) answer()
    expect(await Promise.all([...first, second])).toEqual([10, 20, 30])
    calls[2]!.answer()
    expect(await Promise.all(third)).toEqual([40, 50])
  })

  test('a batcher passes at most as many items to a call as sizeOf returns', async () => {
    const sizes: number[] = []
    const batcher = createBatcher<number, number>(
      async (items) => {
        sizes.push(items.length)
        return items.map(fulfilled)
      },
      { sizeOf: () => 2, maxInFlight: 1 },
    )
    await Promise.all([1, 2, 3, 4, 5].map(batcher.add))
    expect(sizes).toEqual([2, 2, 1])
  })

  test('a batcher settles each item with its own outcome, and rejects all items of a failed call', async () => {
    const batcher = createBatcher<string, string>(async (items) => {
      if (items.includes('fail')) throw new Error('call')
      return items.map((item) => (item === 'bad' ? { status: 'rejected', reason: new Error(item) } : fulfilled(item)))
    })
    const [good, bad] = await Promise.allSettled([batcher.add('good'), batcher.add('bad')])
    expect([good, bad]).toMatchObject([{ value: 'good' }, { reason: { message: 'bad' } }])
    const failed = await Promise.allSettled([batcher.add('fail'), batcher.add('good')])
    expect(failed).toMatchObject([{ reason: { message: 'call' } }, { reason: { message: 'call' } }])
  })
})

test('a batch loader loads a key once per batch, and loads it again for a later request', async () => {
  const loads: string[][] = []
  const load = createBatchLoader(async (keys) => {
    loads.push(keys)
    return new Map([['a', loads.length]])
  })
  expect(await Promise.all([load('a'), load('a'), load('b')])).toEqual([1, 1, undefined])
  expect(await load('a')).toBe(2)
  expect(loads).toEqual([['a', 'b'], ['a']])
})
