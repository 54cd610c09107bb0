import { expect, it } from 'vitest'
import type { CoreClients } from './core-clients.ts'
import { createGrantCache } from './grant-cache.ts'

const credentials = { accessGrant: 'grant-1', origin: 'https://shop.example' }

function newScene() {
  const scene = { time: 0, calls: [] as PromiseWithResolvers<{ sessionId: string }>[] }
  const core = {
    sessions: {
      async authorizeGrant() {
        const call = Promise.withResolvers<{ sessionId: string }>()
        scene.calls.push(call)
        return { ...(await call.promise), expiresAt: { seconds: 1_000n, nanos: 0 } }
      },
    },
  } as unknown as CoreClients
  const grants = createGrantCache({ core, max: 10, freshMs: 5_000, recheckMs: 1_000, now: () => scene.time })
  /** Answers all pending calls of the core, then waits for the result. */
  async function answered(result: Promise<unknown>) {
    for (const call of scene.calls) call.resolve({ sessionId: 'ses_1' })
    return result
  }
  return { scene, grants, answered }
}

it('asks a core again after the maximum age, counted from the start of the call', async () => {
  const { scene, grants, answered } = newScene()
  const result = grants.authorize(credentials, 'c')
  scene.time = 4_000
  await answered(result)
  scene.time = 5_000
  await grants.authorize(credentials, 'c')
  expect(scene.calls.length).toBe(1)
  scene.time = 5_001
  await answered(grants.authorize(credentials, 'c'))
  expect(scene.calls.length).toBe(2)
})

it('does not confirm with a pending call that is too old', async () => {
  const { scene, grants, answered } = newScene()
  const first = grants.authorize(credentials, 'c')
  scene.time = 1_001
  const confirmed = grants.confirm(credentials, 'c')
  expect(scene.calls.length).toBe(2)
  await answered(Promise.all([first, confirmed]))
})

it('does not cache an answer if the grant was forgotten during the call', async () => {
  const { scene, grants, answered } = newScene()
  const result = grants.authorize(credentials, 'c')
  grants.forget(credentials)
  await answered(result)
  await answered(grants.authorize(credentials, 'c'))
  expect(scene.calls.length).toBe(2)
})

it('shares one call between concurrent requests', async () => {
  const { scene, grants, answered } = newScene()
  await answered(Promise.all([grants.authorize(credentials, 'c'), grants.confirm(credentials, 'c')]))
  expect(scene.calls.length).toBe(1)
})
