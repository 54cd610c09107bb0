import { expect, it } from 'vitest'
import { createPrimaryProof } from './cursor-proof-store.ts'

/**
 * Creates a proof that reads from a fake primary. `scene.newest` is the newest document of the
 * primary.
 */
function newScene() {
  const scene = { time: 0, newest: 'd1', answers: [] as PromiseWithResolvers<void>[] }
  const proof = createPrimaryProof(
    async () => {
      const answer = Promise.withResolvers<void>()
      scene.answers.push(answer)
      const { newest } = scene
      await answer.promise
      return newest
    },
    () => scene.time,
  )
  /** Completes every read under way. */
  async function answer() {
    for (const each of scene.answers.splice(0)) each.resolve()
    await new Promise(setImmediate)
  }
  return { scene, proof, answer }
}

it('asOf returns the start time of a read once the reader has received the newest document', async () => {
  const { scene, proof, answer } = newScene()
  scene.time = 1_000
  expect(proof.asOf()).toBeUndefined()
  scene.time = 1_400
  await answer()
  expect(proof.asOf()).toBeUndefined()
  proof.received('d1')
  expect(proof.asOf()).toBe(1_000)
})

it('asOf returns the start time of a read if the newest document was received before or during it', async () => {
  const { scene, proof, answer } = newScene()
  proof.received('d1')
  proof.asOf()
  proof.received('d2')
  await answer()
  expect(proof.asOf()).toBe(0)
  scene.newest = 'd2'
  scene.time = 200
  proof.asOf()
  await answer()
  expect(proof.asOf()).toBe(200)
})

it('asOf returns the same time while the reader lacks the newest document, and throws after 5 seconds', async () => {
  const { scene, proof, answer } = newScene()
  proof.received('d1')
  proof.asOf()
  await answer()
  expect(proof.asOf()).toBe(0)
  scene.newest = 'd2'
  for (scene.time = 200; scene.time <= 5_000; scene.time += 200) {
    expect(proof.asOf()).toBe(0)
    await answer()
  }
  expect(() => proof.asOf()).toThrow('behind the primary')
})

it('asOf returns undefined when no majority of the servers confirms the read', async () => {
  const { scene, proof } = newScene()
  proof.received('d1')
  proof.asOf()
  for (const each of scene.answers.splice(0)) each.reject(new Error('MaxTimeMSExpired'))
  await new Promise(setImmediate)
  expect(proof.asOf()).toBeUndefined()
})
