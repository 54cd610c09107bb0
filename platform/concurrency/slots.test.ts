import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { createSlots, NoSlotError, type Slot } from './slots.ts'

const group = (key: string, max = 2, waitingMax = 100) => ({ key, max, waitingMax })

/** Enters, and records the name once a slot is given. */
function createQueue(options: { max: number; waitingMax?: number }) {
  const timers = new Set<() => void>()
  const slots = createSlots({
    waitingMax: 1_000,
    ...options,
    waitMaxMs: 1,
    after(_ms, run) {
      timers.add(run)
      return () => timers.delete(run)
    },
  })
  const given: string[] = []
  const held = new Map<string, Slot>()
  const failed: string[] = []
  return {
    given,
    held,
    failed,
    timers,
    enter(name: string, groups = [group('all', 1_000)], signal?: AbortSignal) {
      return slots.enter(groups, signal).then(
        (slot) => {
          given.push(name)
          held.set(name, slot)
        },
        (error) => void failed.push(`${name} ${error instanceof NoSlotError ? error.isGroupFull : error.message}`),
      )
    },
    settle: () => new Promise(setImmediate),
  }
}

describe('slots', () => {
  it('are given to waiting calls in order of arrival', async () => {
    const { enter, given, held, settle } = createQueue({ max: 1 })
    for (const name of ['a', 'b', 'c']) void enter(name)
    await settle()
    expect(given).toEqual(['a'])
    held.get('a')!.leave()
    await settle()
    held.get('b')!.leave()
    await settle()
    expect(given).toEqual(['a', 'b', 'c'])
  })

  it('are given to another group while a group holds all its slots', async () => {
    const { enter, given, held, settle } = createQueue({ max: 4 })
    for (const name of ['a1', 'a2', 'a3']) void enter(name, [group('a')])
    void enter('b1', [group('b')])
    await settle()
    expect(given).toEqual(['a1', 'a2', 'b1'])
    held.get('a1')!.release()
    await settle()
    expect(given).not.toContain('a3')
    held.get('a1')!.leave()
    await settle()
    expect(given).toContain('a3')
  })

  it('are refused when too many calls wait, of a group or in total, and after the wait', async () => {
    const { enter, failed, timers, settle } = createQueue({ max: 1, waitingMax: 2 })
    void enter('a1', [group('a', 1, 1)])
    for (const name of ['a2', 'a3']) void enter(name, [group('a', 1, 1)])
    for (const name of ['b1', 'b2']) void enter(name, [group('b')])
    await settle()
    expect(failed).toEqual(['a3 true', 'b2 false'])
    for (const run of [...timers]) run()
    await settle()
    expect(failed.slice(2)).toEqual(['a2 false', 'b1 false'])
  })

  it('skip calls that were aborted while they waited', async () => {
    const { enter, failed, given, held, settle } = createQueue({ max: 1 })
    const controller = new AbortController()
    void enter('a')
    void enter('b', undefined, controller.signal)
    void enter('c')
    controller.abort(new Error('gone'))
    await settle()
    held.get('a')!.leave()
    await settle()
    expect([given, failed]).toEqual([['a', 'c'], ['b gone']])
  })

  it('never exceed their limits, serve every call, and keep no counts of groups that are gone', async () => {
    const steps = fc.array(fc.record({ group: fc.nat(3), leaves: fc.boolean() }), { minLength: 1, maxLength: 60 })
    await forAllAsync([steps, fc.integer({ min: 1, max: 4 })], runs(200), async (calls, max) => {
      const { enter, given, held, failed, settle } = createQueue({ max })
      const groupOf = (name: string) => name.split(' ')[1]!
      const free = async (name: string) => {
        held.get(name)!.release()
        held.get(name)!.leave()
        held.get(name)!.leave()
        held.delete(name)
        await settle()
      }
      for (const [index, { group: number, leaves }] of calls.entries()) {
        void enter(`${index} g${number}`, [group(`g${number}`)])
        await settle()
        expect(held.size).toBeLessThanOrEqual(max)
        for (let each = 0; each < 4; each++)
          expect([...held.keys()].filter((name) => groupOf(name) === `g${each}`).length).toBeLessThanOrEqual(2)
        const [oldest] = held.keys()
        if (leaves && oldest) await free(oldest)
      }
      while (held.size > 0) await free([...held.keys()][0]!)
      expect(failed).toEqual([])
      for (let each = 0; each < 4; each++) {
        const ofGroup = given.filter((name) => groupOf(name) === `g${each}`).map(Number.parseFloat)
        expect(ofGroup).toEqual(ofGroup.toSorted((a, b) => a - b))
      }
      expect(given.length).toBe(calls.length)
    })
  })
})
