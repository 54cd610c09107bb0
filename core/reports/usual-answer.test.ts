import { describe, expect, it } from 'vitest'
import { until } from '../../test/support/until.ts'
import { bareCore } from '../test/core-with.ts'
import { testCores } from '../test/cores.ts'
import { newWorkspace, tell } from '../test/told-conversations.ts'
import { reportStoreOf } from './report-store.ts'
import { usualAnswersOf } from './usual-answer.ts'

const cores = testCores({ started: false })

describe('the usual time to answer', () => {
  let now = Date.parse('2026-03-08T12:00:00Z')
  const usual = (store: Pick<ReturnType<typeof reportStoreOf>, 'newest' | 'read'> = reportStoreOf(cores.core)) => {
    const warnings: object[] = []
    const core = bareCore({ logger: { warn: (fields: object) => warnings.push(fields) }, now: () => now })
    reportStoreOf.set(core, store as never)
    return { warnings, ...usualAnswersOf(core) }
  }
  const tellAnswered = async (workspaceId: string, seconds: number[], begunAt = '2026-03-08T10:00:00Z') => {
    for (const each of seconds) await tell(cores.core, workspaceId, { begunAt, agent: [each] })
  }

  it('is that of half of the newest conversations, once 10 were answered', async () => {
    const workspaceId = newWorkspace()
    await tellAnswered(workspaceId, Array(20).fill(5), '2026-02-20T10:00:00Z')
    await tellAnswered(workspaceId, [10, 20, 30, 61, 61, 700, 800, 900, 1000])
    await tell(cores.core, workspaceId, { begunAt: '2026-03-08T11:00:00Z' })
    const { newest, read } = reportStoreOf(cores.core)
    let readings = 0
    const few = usual({ newest, read: (ids) => read(ids).finally(() => (readings += 1)) })
    expect(few.minutesOf(workspaceId)).toBeUndefined()
    await until('nine answers to be read', () => readings === 1)
    await tellAnswered(workspaceId, [40])
    const { minutesOf } = usual()
    expect(minutesOf(workspaceId)).toBeUndefined()
    expect(await until('the time to be known', () => minutesOf(workspaceId))).toBe(2)
    // What was known before the tenth answer holds for an hour.
    expect(few.minutesOf(workspaceId)).toBeUndefined()
    now += 3_600_000
    await until('the time to be read again', () => few.minutesOf(workspaceId))
  })

  it('is left out above a day, and in other workspaces', async () => {
    const workspaceId = newWorkspace()
    await tellAnswered(workspaceId, Array(12).fill(90_000), '2026-03-06T08:00:00Z')
    const quick = newWorkspace()
    await tellAnswered(quick, Array(12).fill(0))
    const { minutesOf } = usual()
    for (const each of [workspaceId, newWorkspace(), quick]) expect(minutesOf(each)).toBeUndefined()
    expect(await until('the last of the three to be read', () => minutesOf(quick))).toBe(1)
    expect(minutesOf(workspaceId)).toBeUndefined()
  })

  it('is read once for many requests, and a failure neither reaches them nor stops later readings', async () => {
    let calls = 0
    const store = {
      newest: async () => {
        calls += 1
        throw new RangeError('private')
      },
      read: async () => [],
    }
    const { minutesOf, warnings } = usual(store)
    for (let count = 0; count < 100; count += 1) expect(minutesOf('ws_1')).toBeUndefined()
    minutesOf('ws_2')
    await until('both readings', () => warnings.length === 2)
    expect([calls, warnings]).toEqual([2, [{ reason: 'RangeError' }, { reason: 'RangeError' }]])
  })
})
