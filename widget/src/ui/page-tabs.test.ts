import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { TabSlot } from '../platform.ts'
import { waitForSlot } from './page-tabs.ts'

const made: TabSlot[] = []
afterEach(() => {
  vi.unstubAllGlobals()
  for (const slot of made.splice(0)) slot.release()
})

function waiting(name: string, count: number) {
  const told = { granted: 0, lost: 0 }
  const slot = waitForSlot(
    name,
    count,
    () => {
      told.granted += 1
    },
    () => {
      told.lost += 1
    },
  )!
  made.push(slot)
  return { told, slot }
}

const lockedNow = async (name: string) =>
  (await navigator.locks.query()).held!.filter((lock) => lock.name!.startsWith(name)).length

describe('slots of the tabs of a browser', () => {
  it('grants as many as there are, and the next one when one is released', async () => {
    const name = randomUUID()
    const tabs = Array.from({ length: 4 }, () => waiting(name, 2))
    await vi.waitFor(() => expect(tabs.map(({ told }) => told.granted)).toEqual([1, 1, 0, 0]))
    expect(await tabs[0]!.slot.isWanted()).toBe(true)
    tabs[0]!.slot.release()
    await vi.waitFor(() => expect(tabs.map(({ told }) => told.granted)).toEqual([1, 1, 1, 0]))
    tabs[1]!.slot.release()
    await vi.waitFor(() => expect(tabs.map(({ told }) => told.granted)).toEqual([1, 1, 1, 1]))
    await vi.waitFor(async () => expect(await lockedNow(name)).toBe(2))
  })

  it('grants one slot to a tab, even if all are free', async () => {
    const name = randomUUID()
    const { told } = waiting(name, 5)
    await vi.waitFor(() => expect(told.granted).toBe(1))
    await vi.waitFor(async () => expect(await lockedNow(name)).toBe(1))
    expect(told).toEqual({ granted: 1, lost: 0 })
  })

  it('grants nothing to a tab that stopped waiting, and leaves no lock behind', async () => {
    const name = randomUUID()
    const holder = waiting(name, 1)
    await vi.waitFor(() => expect(holder.told.granted).toBe(1))
    const gone = waiting(name, 1)
    gone.slot.release()
    gone.slot.steal()
    await vi.waitFor(async () => expect(await lockedNow(name)).toBe(0))
    expect(gone.told).toEqual({ granted: 0, lost: 0 })
  })

  it('tells the holder that its slot was stolen, and the thief keeps it', async () => {
    const name = randomUUID()
    const holder = waiting(name, 1)
    await vi.waitFor(() => expect(holder.told.granted).toBe(1))
    const thief = waiting(name, 1)
    thief.slot.steal()
    await vi.waitFor(() => expect([holder.told.lost, thief.told.granted]).toEqual([1, 1]))
    holder.slot.release()
    expect(await lockedNow(name)).toBe(1)
    expect(thief.told).toEqual({ granted: 1, lost: 0 })
  })

  it('grants at once, and once, where the page may not use locks', async () => {
    vi.stubGlobal('navigator', {
      locks: { request: () => Promise.reject(new DOMException('denied', 'SecurityError')) },
    })
    const { told } = waiting(randomUUID(), 5)
    await vi.waitFor(() => expect(told.granted).toBe(1))
    expect(told).toEqual({ granted: 1, lost: 0 })
  })

  it('are missing where the browser has no locks', () => {
    vi.stubGlobal('navigator', {})
    expect(waitForSlot('any', 1, vi.fn(), vi.fn())).toBeUndefined()
  })
})
