import { setTimeout as delay } from 'node:timers/promises'
import type { ReplicaSet } from '../replica-set/replica-set.ts'
import type { Service } from './service.ts'

/** These faults run one after the other. A fault begins with a replica set without faults. */
let last: Promise<unknown> = Promise.resolve()

const causing =
  (what: string, cause: (set: ReplicaSet, how: { lastsMs: number; draw: number }) => Promise<void>) =>
  async ({ replicaSet }: Service, how: { lastsMs: number; draw: number }): Promise<string> => {
    if (!replicaSet) return `${what}: not without a simulated replica set`
    const turn = last.then(() => cause(replicaSet, how))
    last = turn.catch(() => {})
    await turn
    return what
  }

/** Faults of a simulated replica set. */
export const setFaults = {
  'set-primary-isolated': causing('primary isolated', async (set, { lastsMs }) => {
    await set.isolatePrimary()
    await delay(lastsMs)
    await set.rejoin()
  }),

  'set-primary-closed': causing('primary stepped down and closed its connections', (set) =>
    set.stepDown({ closes: true }),
  ),

  'set-writes-rolled-back': causing('writes that no majority had rolled back', async (set, { lastsMs }) => {
    await set.holdBack(set.secondaries())
    await delay(lastsMs)
    const former = set.primary()
    await set.stop(former)
    await set.start(former)
  }),

  'set-secondaries-late': causing('both secondaries late', async (set, { lastsMs }) => {
    await set.holdBack(set.secondaries())
    await delay(lastsMs)
    await set.catchUp()
  }),

  'set-answers-lost': causing('writes and answers lost', async (set, { lastsMs }) => {
    set.faults.inShare(0.2)
    await delay(lastsMs)
    set.faults.inShare(0)
  }),
}
