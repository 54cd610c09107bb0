import { randomUUID } from 'node:crypto'
import { ObjectId } from 'mongodb'
import { expect, it } from 'vitest'
import { coreWith } from '../test/core-with.ts'
import { testCores } from '../test/cores.ts'
import { createLogFollower } from './log-follower.ts'

const cores = testCores({ started: false })
const settledMs = 90_000
const second = 1_000
const start = Date.UTC(2020, 0, 1)

let created = 0
/** Inserts an event with an id of this time. */
async function insert(at: number): Promise<number> {
  created += 1
  const _id = ObjectId.createFromTime(at / 1000)
  _id.id.set(new ObjectId().id.subarray(4), 4)
  await cores.core.database.collections.events.insertOne({
    _id,
    conversationId: `cnv_${randomUUID()}`,
    sequence: created,
    type: 'agent.unassigned',
    occurredAt: new Date(at),
  } as never)
  return created
}

/** Creates followers of one name on several cores, which share the clock. */
function newFollowers(count = 1) {
  const scene = {
    time: start,
    handled: [] as number[],
    fails: false,
    stopsInHandle: false,
    stopping: new AbortController(),
  }
  const name = randomUUID()
  const followers = Array.from({ length: count }, (_, number) =>
    createLogFollower(coreWith(cores.core, { now: () => scene.time }), {
      name,
      async handle(events) {
        if (scene.fails) throw new Error('failed by the test')
        // The handler of a core that stops leaves events out.
        if (scene.stopsInHandle) return scene.stopping.abort()
        scene.handled.push(...events.map(({ sequence }) => sequence))
      },
      signal: number === 0 ? scene.stopping.signal : new AbortController().signal,
    }),
  )
  return { scene, followers, catchUp: () => followers[0]!.catchUp() }
}

it('a follower reads each event, also one that was committed after events with later ids', async () => {
  const { scene, catchUp } = newFollowers()
  const expected = [await insert(start), await insert(start + 2 * second)]
  scene.time = start + 60 * second
  await catchUp()
  expect(scene.handled).toEqual([])
  // A write that took almost a minute, from a core whose clock is two seconds behind.
  const late = await insert(start + second)
  scene.time = start + settledMs + 3 * second
  await catchUp()
  expect(scene.handled).toEqual([expected[0], late, expected[1]])
  await catchUp()
  expect(scene.handled).toHaveLength(3)
})

it('a follower reads events again if their handling failed, and another core continues from its position', async () => {
  const { scene, followers } = newFollowers(2)
  const from = start + 1_000 * second
  const expected = [await insert(from), await insert(from + second)]
  scene.time = from + 200 * second
  scene.fails = true
  await expect(followers[0]!.catchUp()).rejects.toThrow('failed by the test')
  scene.fails = false
  await followers[1]!.catchUp()
  expect(scene.handled.slice(-2)).toEqual(expected)
  const known = scene.handled.length
  await followers[0]!.catchUp()
  expect(scene.handled).toHaveLength(known)
})

it('followers of two cores that run at the same time leave no event out', async () => {
  const { scene, followers } = newFollowers(2)
  const from = start + 2_000 * second
  const expected: number[] = []
  for (let index = 0; index < 20; index += 1) expected.push(await insert(from + index * second))
  scene.time = from + 300 * second
  await Promise.all(followers.map((follower) => follower.catchUp()))
  expect(new Set(scene.handled)).toEqual(new Set(Array.from({ length: created }, (_, index) => index + 1)))
  expect(expected.every((each) => scene.handled.includes(each))).toBe(true)
})

it('a follower that is stopped does not move its position past events that it may have left out', async () => {
  const { scene, followers } = newFollowers(2)
  const from = start + 5_000 * second
  const event = await insert(from)
  scene.time = from + 200 * second
  scene.stopsInHandle = true
  await followers[0]!.catchUp()
  expect(scene.handled).toEqual([])
  scene.stopsInHandle = false
  await followers[1]!.catchUp()
  expect(scene.handled).toContain(event)
})
