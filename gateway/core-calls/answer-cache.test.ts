import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { GatewayError, unavailable } from '../errors.ts'
import { createAnswerCache } from './answer-cache.ts'

interface Answer {
  text: string
}

function newScene({ maxSize = 100, staleMs = 0 } = {}) {
  const scene = { time: 10_000, asked: 0 }
  const cache = createAnswerCache<Answer>({
    freshMs: 1_000,
    staleMs,
    maxSize,
    sizeOf: ({ text }) => text.length,
    now: () => scene.time,
  })
  const accept = (key: string, text = key) =>
    cache.ask(key, async () => {
      scene.asked += 1
      return { text }
    })
  const fail = (key: string, error: Error) =>
    cache.ask(key, async () => {
      scene.asked += 1
      throw error
    })
  const refuse = (key: string) => fail(key, new GatewayError('InstallationNotFound', { decidedBy: 'core' }))
  return { scene, cache, accept, fail, refuse }
}

describe('an accepted answer', () => {
  it('is fresh for `freshMs`, counted from the start of the call to the core', async () => {
    const { scene, cache, accept } = newScene()
    const answer = Promise.withResolvers<Answer>()
    const asking = cache.ask('a', () => answer.promise)
    expect(cache.fresh('a')).toBeUndefined()
    scene.time += 600
    answer.resolve({ text: 'A' })
    await asking
    scene.time += 399
    expect(cache.fresh('a')).toEqual({ text: 'A' })
    expect(await accept('a', 'new')).toEqual({ text: 'A' })
    scene.time += 1
    expect(cache.fresh('a')).toBeUndefined()
    expect(await accept('a', 'new')).toEqual({ text: 'new' })
  })

  it('is shared by concurrent requests, which cause one call to the core', async () => {
    const { scene, accept } = newScene()
    const answers = await Promise.all(Array.from({ length: 50 }, () => accept('a')))
    expect(new Set(answers).size).toBe(1)
    expect(scene.asked).toBe(1)
  })

  it('is not used after the clock was set back; the same applies to a cached refusal', async () => {
    const { scene, cache, accept, refuse } = newScene()
    await accept('a')
    await expect(refuse('b')).rejects.toMatchObject({ code: 'InstallationNotFound' })
    scene.time -= 3_600_000
    expect(cache.fresh('a')).toBeUndefined()
    expect(await accept('b')).toEqual({ text: 'b' })
  })

  it('is used for a further `staleMs` if the next call fails without a refusal, but is not used if `staleMs` is 0', async () => {
    for (const staleMs of [0, 500]) {
      const { scene, cache, accept, fail } = newScene({ staleMs })
      await accept('a')
      scene.time += 1_000
      const failed = fail('a', unavailable())
      if (staleMs === 0) {
        await expect(failed).rejects.toMatchObject({ code: 'ServiceUnavailable' })
        expect(cache.fresh('a')).toBeUndefined()
        continue
      }
      expect(await failed).toEqual({ text: 'a' })
      scene.time += 499
      expect(cache.fresh('a')).toEqual({ text: 'a' })
      scene.time += 1
      expect(cache.fresh('a')).toBeUndefined()
    }
  })
})

describe('a refusal', () => {
  it('replaces the accepted answer, and rejects all requests of its key for 500 ms', async () => {
    const { scene, cache, accept, refuse } = newScene()
    await accept('a')
    scene.time += 1_000
    await expect(refuse('a')).rejects.toMatchObject({ code: 'InstallationNotFound' })
    expect(cache.fresh('a')).toBeUndefined()
    scene.time += 499
    await expect(accept('a')).rejects.toMatchObject({ code: 'InstallationNotFound', details: { decidedBy: 'core' } })
    expect(scene.asked).toBe(2)
    scene.time += 1
    expect(await accept('a', 'created')).toEqual({ text: 'created' })
  })

  it('evicts no accepted answer of another key, and is itself evicted by 10,000 newer refusals', async () => {
    const { scene, cache, accept, refuse } = newScene()
    await accept('good')
    for (let index = 0; index <= 10_000; index += 1) await refuse(`random-${index}`).catch(() => {})
    expect(cache.fresh('good')).toEqual({ text: 'good' })
    const { asked } = scene
    await refuse('random-1').catch(() => {})
    expect(scene.asked).toBe(asked)
    await refuse('random-0').catch(() => {})
    expect(scene.asked).toBe(asked + 1)
  })
})

it('failures other than refusals are not cached', async () => {
  const { scene, accept, fail } = newScene()
  await expect(fail('a', unavailable())).rejects.toMatchObject({ code: 'ServiceUnavailable' })
  expect(await accept('a')).toEqual({ text: 'a' })
  expect(scene.asked).toBe(2)
})

it('for any sequence of calls, the answers fit into `maxSize`, and `fresh` returns only the last answer of a key', async () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    text: fc.string({ minLength: 1, maxLength: 30 }),
    kind: fc.constantFrom('accept', 'refuse', 'fail'),
    wait: fc.nat(1_500),
  })
  await forAllAsync([fc.array(step, { maxLength: 40 })], {}, async (steps) => {
    const { scene, cache, accept, fail, refuse } = newScene({ maxSize: 50 })
    const last = new Map<string, { text: string; at: number }>()
    for (const { key, text, kind, wait } of steps) {
      scene.time += wait
      const before = scene.asked
      const asking = {
        accept: () => accept(key, text),
        refuse: () => refuse(key),
        fail: () => fail(key, unavailable()),
      }
      await asking[kind]().catch(() => {})
      if (scene.asked > before && kind === 'accept') last.set(key, { text, at: scene.time })
      if (scene.asked > before && kind === 'refuse') last.delete(key)
      const fresh = ['a', 'b', 'c', 'd', 'e'].flatMap((each) =>
        cache.fresh(each) ? [[each, cache.fresh(each)!.text] as const] : [],
      )
      expect(fresh.reduce((sum, [, each]) => sum + each.length, 0)).toBeLessThanOrEqual(50)
      for (const [each, shown] of fresh) {
        expect(last.get(each)?.text).toBe(shown)
        expect(scene.time - last.get(each)!.at).toBeLessThan(1_000)
      }
    }
  })
})
