import { create } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { expect, it } from 'vitest'
import { SessionContentSchema } from '#proto/session/v1/session_pb.js'
import { Gateway } from '../gateway.ts'
import { coreOf } from './core-clients.ts'
import { grantsOf } from './grant-cache.ts'

const credentials = { accessGrant: 'grant-1', origin: 'https://shop.example' }

function newScene() {
  const scene = { time: 0, calls: [] as PromiseWithResolvers<{ sessionId: string }>[], expiredToo: [] as boolean[] }
  const core = {
    sessions: {
      async authorizeGrant({ expiredToo }: { expiredToo: boolean }) {
        const call = Promise.withResolvers<{ sessionId: string }>()
        scene.calls.push(call)
        scene.expiredToo.push(expiredToo)
        const times = { expiresAt: { seconds: 1_000n, nanos: 0 }, renewableUntil: { seconds: 1_002n, nanos: 0 } }
        return { ...(await call.promise), ...times }
      },
    },
  } as unknown as ReturnType<typeof coreOf>
  const gateway = new Gateway({ clock: { now: () => scene.time } } as Partial<Gateway> as Gateway)
  coreOf.set(gateway, core)
  const grants = grantsOf(gateway)
  /** Answers all pending calls to the core, then waits for the result. */
  async function answered(result: Promise<unknown>) {
    for (const call of scene.calls) call.resolve({ sessionId: 'ses_1' })
    return result
  }
  return { scene, grants, answered }
}

it('a grant is cached until it expires, and then a core is asked again', async () => {
  const { scene, grants, answered } = newScene()
  const result = grants.authorize(credentials, 'c', false)
  expect(grants.known(credentials, false)).toBeUndefined()
  await answered(result)
  scene.time = 999_999
  expect(grants.known(credentials, false)).toMatchObject({ sessionId: 'ses_1' })
  await grants.authorize(credentials, 'c', false)
  expect(scene.calls.length).toBe(1)
  scene.time = 1_000_000
  expect(grants.known(credentials, false)).toBeUndefined()
  expect(grants.known(credentials, true)).toMatchObject({ sessionId: 'ses_1' })
  await answered(grants.authorize(credentials, 'c', false))
  expect(scene.calls.length).toBe(2)
})

it('a grant that a core has issued is cached for its origin only, and `confirm` still calls a core', async () => {
  const { scene, grants, answered } = newScene()
  const { accessGrant, origin } = credentials
  const times = { expiresAt: timestampFromMs(1_000_000), renewableUntil: timestampFromMs(1_002_000) }
  grants.remember(origin, create(SessionContentSchema, { accessGrant, sessionId: 'ses_1', ...times }))
  expect(grants.known(credentials, false)).toMatchObject({ sessionId: 'ses_1' })
  expect(grants.known({ accessGrant, origin: 'https://evil.example' }, false)).toBeUndefined()
  expect(scene.calls.length).toBe(0)
  await answered(grants.confirm(credentials, 'c', false))
  expect(scene.calls.length).toBe(1)
  grants.forget(credentials)
  expect(grants.known(credentials, true)).toBeUndefined()
})

it('`confirm` calls a core again if the pending call started more than 250 ms ago', async () => {
  const { scene, grants, answered } = newScene()
  const first = grants.authorize(credentials, 'c', false)
  scene.time = 251
  const confirmed = grants.confirm(credentials, 'c', false)
  expect(scene.calls.length).toBe(2)
  await answered(Promise.all([first, confirmed]))
})

it('an answer is not cached if `forget` was called during the call', async () => {
  const { scene, grants, answered } = newScene()
  const result = grants.authorize(credentials, 'c', false)
  grants.forget(credentials)
  await answered(result)
  await answered(grants.authorize(credentials, 'c', false))
  expect(scene.calls.length).toBe(2)
})

it('concurrent requests share one call to a core', async () => {
  const { scene, grants, answered } = newScene()
  await answered(Promise.all([grants.authorize(credentials, 'c', false), grants.confirm(credentials, 'c', false)]))
  expect(scene.calls.length).toBe(1)
})

it('the authorization of an expired grant is cached until the session expires, and is used for renewals only', async () => {
  const { scene, grants, answered } = newScene()
  const renew = () => answered(grants.authorize(credentials, 'c', true))
  scene.time = 1_000_000
  await renew()
  await renew()
  await answered(grants.confirm(credentials, 'c', true))
  expect(scene.expiredToo).toEqual([true])
  await answered(grants.authorize(credentials, 'c', false))
  expect(scene.expiredToo).toEqual([true, false])
  scene.time = 1_002_000
  await renew()
  expect(scene.expiredToo).toEqual([true, false, true])
})

it('a renewal makes its own call to a core while another request with the same grant is pending', async () => {
  const { scene, grants, answered } = newScene()
  await answered(Promise.all([grants.authorize(credentials, 'c', false), grants.authorize(credentials, 'c', true)]))
  expect(scene.expiredToo).toEqual([false, true])
  await answered(grants.authorize(credentials, 'c', true))
  expect(scene.calls.length).toBe(2)
})
