import type { ObjectId } from 'mongodb'
import { expect, it } from 'vitest'
import { createCursorProof } from './cursor-proof-store.ts'

/** Creates a proof. Each written beat waits for `confirm` or `refuse`. */
function newScene(isNeeded = () => true) {
  const scene = { time: 0, beats: [] as ObjectId[], waiting: [] as PromiseWithResolvers<void>[] }
  const proof = createCursorProof(
    (id) => {
      scene.beats.push(id)
      const confirmed = Promise.withResolvers<void>()
      scene.waiting.push(confirmed)
      return confirmed.promise
    },
    () => scene.time,
    isNeeded,
  )
  async function settle(how: (each: PromiseWithResolvers<void>) => void) {
    scene.waiting.splice(0).forEach(how)
    await new Promise(setImmediate)
  }
  return {
    scene,
    proof,
    confirm: () => settle(({ resolve }) => resolve()),
    refuse: () => settle(({ reject }) => reject(new Error('WriteConcernFailed'))),
    /** The reader receives the newest beat. */
    receive: () => proof.received(scene.beats.at(-1)!),
  }
}

it('asOf returns the start time of a beat once a majority has confirmed it and the reader has received it', async () => {
  const { scene, proof, confirm, receive } = newScene()
  scene.time = 1_000
  expect(proof.asOf()).toBeUndefined()
  scene.time = 1_100
  await confirm()
  expect(proof.asOf()).toBeUndefined()
  receive()
  expect(proof.asOf()).toBe(1_000)
  scene.time = 1_300
  expect(proof.asOf()).toBe(1_000)
  receive()
  expect(proof.asOf()).toBe(1_000)
  await confirm()
  expect(proof.asOf()).toBe(1_300)
  expect(scene.beats).toHaveLength(2)
})

it('asOf returns the same time while the reader lacks a confirmed beat, and throws after 5 seconds', async () => {
  const { scene, proof, confirm, receive } = newScene()
  proof.asOf()
  await confirm()
  receive()
  expect(proof.asOf()).toBe(0)
  scene.time = 300
  proof.asOf()
  await confirm()
  for (; scene.time <= 5_300; scene.time += 200) expect(proof.asOf()).toBe(0)
  expect(() => proof.asOf()).toThrow('behind the primary')
})

it('asOf returns the same time, and keeps the cursor, while no majority confirms beats', async () => {
  const { scene, proof, confirm, refuse, receive } = newScene()
  proof.asOf()
  await confirm()
  receive()
  expect(proof.asOf()).toBe(0)
  for (scene.time = 300; scene.time <= 20_000; scene.time += 300) {
    expect(proof.asOf()).toBe(0)
    receive()
    if (scene.time % 1_500 === 0) await refuse()
  }
  await refuse()
  proof.asOf()
  receive()
  await confirm()
  expect(proof.asOf()).toBe(scene.time)
})

it('a beat that was received but not confirmed proves nothing', async () => {
  const { scene, proof, refuse, receive } = newScene()
  proof.asOf()
  receive()
  await refuse()
  scene.time = 300
  expect(proof.asOf()).toBeUndefined()
})

it('writes beats rarely while nobody needs the proof, and one at once when somebody does', async () => {
  let isNeeded = false
  const { scene, proof, confirm, receive } = newScene(() => isNeeded)
  for (; scene.time < 60_000; scene.time += 100) {
    proof.asOf()
    receive()
    await confirm()
  }
  expect(scene.beats).toHaveLength(3)
  isNeeded = true
  proof.beatIfDue()
  expect(scene.beats).toHaveLength(4)
  receive()
  await confirm()
  expect(proof.asOf()).toBe(60_000)
})
