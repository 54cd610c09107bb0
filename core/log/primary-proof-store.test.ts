import { expect, it } from 'vitest'
import { createPrimaryProof } from './primary-proof-store.ts'

/** A primary with documents, and a reader of some server that may be another one by now. */
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
  /** Answers every question that is under way. */
  async function answer() {
    for (const each of scene.answers.splice(0)) each.resolve()
    await new Promise(setImmediate)
  }
  return { scene, proof, answer }
}

it('is as current as the question, once the reader has got the newest document', async () => {
  const { scene, proof, answer } = newScene()
  scene.time = 1_000
  expect(proof.asOf()).toBeUndefined()
  scene.time = 1_400
  await answer()
  expect(proof.asOf()).toBeUndefined()
  proof.given('d1')
  expect(proof.asOf()).toBe(1_000)
})

it('counts a document that the reader got before the question or while it was under way', async () => {
  const { scene, proof, answer } = newScene()
  proof.given('d1')
  proof.asOf()
  proof.given('d2')
  await answer()
  expect(proof.asOf()).toBe(0)
  scene.newest = 'd2'
  scene.time = 200
  proof.asOf()
  await answer()
  expect(proof.asOf()).toBe(200)
})

it('stays where it was while the reader’s server does not have what the primary has', async () => {
  const { scene, proof, answer } = newScene()
  proof.given('d1')
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

it('proves nothing with a read that no majority confirms', async () => {
  const { scene, proof } = newScene()
  proof.given('d1')
  proof.asOf()
  for (const each of scene.answers.splice(0)) each.reject(new Error('MaxTimeMSExpired'))
  await new Promise(setImmediate)
  expect(proof.asOf()).toBeUndefined()
})
