import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { waitForSlot } from './page-tabs.ts'
import type { TabSlot } from './platform.ts'

const made: TabSlot[] = []
afterEach(() => {
  vi.unstubAllGlobals()
  for (const slot of made.splice(0)) slot.release()
})

function waiting(name: string, count: number) {
  const calls = { granted: 0, lost: 0 }
  const slot = waitForSlot(
    name,
    count,
    () => {
      calls.granted += 1
    },
    () => {
      calls.lost += 1
    },
  )!
  made.push(slot)
  return { calls, slot }
}

const lockedNow = async (name: string) =>
  (await navigator.locks.query()).held!.filter((lock) => lock.name!.startsWith(name)).length

describe('waitForSlot', () => {
  it('waitForSlot grants each slot to one tab, and to a waiting tab once the slot is released', async () => {
    const name = randomUUID()
    const tabs = Array.from({ length: 4 }, () => waiting(name, 2))
    await vi.waitFor(() => expect(tabs.map(({ calls }) => calls.granted)).toEqual([1, 1, 0, 0]))
    expect(await tabs[0]!.slot.isWanted()).toBe(true)
    tabs[0]!.slot.release()
    await vi.waitFor(() => expect(tabs.map(({ calls }) => calls.granted)).toEqual([1, 1, 1, 0]))
    tabs[1]!.slot.release()
    await vi.waitFor(() => expect(tabs.map(({ calls }) => calls.granted)).toEqual([1, 1, 1, 1]))
    await vi.waitFor(async () => expect(await lockedNow(name)).toBe(2))
  })

  it('waitForSlot grants only one slot to a tab, even if all slots are free', async () => {
    const name = randomUUID()
    const { calls } = waiting(name, 5)
    await vi.waitFor(() => expect(calls.granted).toBe(1))
    await vi.waitFor(async () => expect(await lockedNow(name)).toBe(1))
    expect(calls).toEqual({ granted: 1, lost: 0 })
  })

  it('waitForSlot grants no slot and no lock to a tab that stopped waiting', async () => {
    const name = randomUUID()
    const holder = waiting(name, 1)
    await vi.waitFor(() => expect(holder.calls.granted).toBe(1))
    const gone = waiting(name, 1)
    gone.slot.release()
    gone.slot.steal()
    await vi.waitFor(async () => expect(await lockedNow(name)).toBe(0))
    expect(gone.calls).toEqual({ granted: 0, lost: 0 })
  })

  it('waitForSlot calls onLost of the tab that holds a slot when another tab steals the slot', async () => {
    const name = randomUUID()
    const holder = waiting(name, 1)
    await vi.waitFor(() => expect(holder.calls.granted).toBe(1))
    const thief = waiting(name, 1)
    thief.slot.steal()
    await vi.waitFor(() => expect([holder.calls.lost, thief.calls.granted]).toEqual([1, 1]))
    holder.slot.release()
    expect(await lockedNow(name)).toBe(1)
    expect(thief.calls).toEqual({ granted: 1, lost: 0 })
  })

  it('waitForSlot calls onGranted at once if the browser forbids locks on the page', async () => {
    vi.stubGlobal('navigator', {
      locks: { request: () => Promise.reject(new DOMException('denied', 'SecurityError')) },
    })
    const { calls } = waiting(randomUUID(), 5)
    await vi.waitFor(() => expect(calls.granted).toBe(1))
    expect(calls).toEqual({ granted: 1, lost: 0 })
  })

  it('waitForSlot returns undefined if the browser does not support locks', () => {
    vi.stubGlobal('navigator', {})
    expect(waitForSlot('any', 1, vi.fn(), vi.fn())).toBeUndefined()
  })
})
