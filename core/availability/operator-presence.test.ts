import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createBus } from '../bus.ts'
import type { Core } from '../core.ts'
import { bareCore } from '../test/core-with.ts'
import { type Wakeups, wakeupsOf } from '../wakeups/wakeups.ts'
import { operatorPresenceOf } from './operator-presence.ts'

/** A store whose writes end when the test says so. */
function heldStore() {
  const writes: { workspaces: string[]; end: () => void }[] = []
  return {
    writes,
    db: {
      operatorPresence: {
        updateOne: (_: object, { $set: { workspaces } }: { $set: { workspaces: string[] } }) =>
          new Promise<void>((resolve) => void writes.push({ workspaces, end: resolve })),
      },
    } as unknown as Core['db'],
  }
}

it('the inboxes that open during a write are stored by one write, which begins after it', async () => {
  const { db, writes } = heldStore()
  const hints: string[] = []
  const core = bareCore({ db, bus: createBus(), logger: pino({ level: 'silent' }), now: Date.now })
  wakeupsOf.set(core, { hint: async (id: string) => void hints.push(id) } as unknown as Wakeups)
  const presence = operatorPresenceOf(core)
  presence.enter('ws_0')
  await turn()
  for (let index = 1; index < 500; index += 1) presence.enter(`ws_${index}`)
  await turn()
  expect(writes.map(({ workspaces }) => workspaces.length)).toEqual([1])
  writes[0]!.end()
  await turn()
  expect(writes.map(({ workspaces }) => workspaces.length)).toEqual([1, 500])
  writes[1]!.end()
  await turn()
  // Nothing has changed since, so nothing more is written or announced.
  expect([writes.length, hints.length]).toEqual([2, 2])
  presence.enter('ws_1')
  await turn()
  expect(writes).toHaveLength(2)
})
