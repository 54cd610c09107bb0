import { expect, it } from 'vitest'
import { createPrimaryProof } from './primary-proof-store.ts'

/** A primary with documents, and a reader of a server that may no longer be the primary. */
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

it('is as current as the read once the reader has the newest document', async () => {
  const { scene, proof, answer } = newScene()
  scene.time = 1_000
  expect(proof.asOf()).toBeUndefined()
  scene.time = 1_400
  await answer()
  expect(proof.asOf()).toBeUndefined()
  proof.received('d1')
  expect(proof.asOf()).toBe(1_000)
})

it('counts documents received before or during the read', async () => {
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

it('stays at its time while the reader lacks the newest document, then throws', async () => {
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

it('proves nothing when no majority confirms the read', async () => {
  const { scene, proof } = newScene()
  proof.received('d1')
  proof.asOf()
  for (const each of scene.answers.splice(0)) each.reject(new Error('MaxTimeMSExpired'))
  await new Promise(setImmediate)
  expect(proof.asOf()).toBeUndefined()
})
