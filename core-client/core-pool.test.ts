import type { Transport } from '@connectrpc/connect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../test/support/for-all.ts'
import { type CoreNode, createCorePool, type Failure, OutOfReachError } from './core-pool.ts'

const down = () => Promise.reject(new Error('down'))
const coreNamed = (name: string): CoreNode => ({
  url: `http://${name}`,
  transport: {} as Transport,
  request: down,
  isWatched: true,
})
const [a, b, c] = [coreNamed('a'), coreNamed('b'), coreNamed('c')]
const as = (failure: Failure) => () => failure

/** Returns the URLs of the cores in the order in which a call tries them when every attempt fails. */
async function triedUrls(pool: ReturnType<typeof createCorePool>, failure: Failure = 'repeatable'): Promise<string[]> {
  const urls: string[] = []
  const attempt = ({ url }: CoreNode) => {
    urls.push(url)
    return down()
  }
  await pool.call(attempt, as(failure)).catch(() => {})
  return urls
}

describe('core pool', () => {
  it('uses the cores in turn while all are idle', async () => {
    const pool = createCorePool({ cores: [a, b, c] })
    const urls = []
    for (let call = 0; call < 6; call++) urls.push(await pool.call(async ({ url }) => url, as('answered')))
    expect(urls.toSorted()).toEqual([a, a, b, b, c, c].map(({ url }) => url))
  })

  it('prefers the core with fewer calls in flight', async () => {
    const pool = createCorePool({ cores: [a, b] })
    const hanging = Promise.withResolvers<void>()
    const first = pool.call(async (core) => {
      await hanging.promise
      return core
    }, as('answered'))
    const later = await Promise.all(Array.from({ length: 4 }, () => pool.call(async ({ url }) => url, as('answered'))))
    hanging.resolve()
    const busy = await first
    // The first of the four calls go to the idle core, until both cores are equally busy.
    expect(later.filter((url) => url === busy.url).length).toBeLessThan(3)
    expect([pool.inFlight(a), pool.inFlight(b)]).toEqual([0, 0])
  })

  it('tries every core once if the call may be repeated, and only one core otherwise', async () => {
    const all = [a, b, c].map(({ url }) => url)
    expect((await triedUrls(createCorePool({ cores: [a, b, c] }))).toSorted()).toEqual(all)
    expect(await triedUrls(createCorePool({ cores: [a, b, c] }), 'lost')).toHaveLength(1)
    expect(await triedUrls(createCorePool({ cores: [a, b, c] }), 'answered')).toHaveLength(1)
  })

  it('rethrows an error response of a core, and throws OutOfReachError if no core is reachable', async () => {
    const pool = createCorePool({ cores: [a] })
    await expect(pool.call(down, as('answered'))).rejects.toThrow('down')
    await expect(pool.call(down, as('lost'))).rejects.toThrow(OutOfReachError)
    await expect(pool.call(down, as('lost'))).rejects.toThrow('no core reachable')
    await expect(createCorePool({}).call(down, as('lost'))).rejects.toThrow(OutOfReachError)
  })

  it('skips a failed core until its watcher marks it alive', async () => {
    const pool = createCorePool({ cores: [a] })
    expect(await triedUrls(pool)).toEqual([a.url])
    expect(await triedUrls(pool)).toEqual([])
    pool.markAlive(a)
    expect(await pool.call(async ({ url }) => url, as('answered'))).toBe(a.url)
  })

  it('keeps calling a failed core without a watcher', async () => {
    const inMemory = { ...a, isWatched: false }
    const pool = createCorePool({ cores: [inMemory] })
    expect(await triedUrls(pool)).toEqual([inMemory.url])
    expect(await pool.call(async ({ url }) => url, as('answered'))).toBe(inMemory.url)
  })

  it('reports added and removed cores to a follower, and lets running calls on a removed core finish', async () => {
    const pool = createCorePool({ cores: [a, b] })
    const reported: string[] = []
    pool.follow({ added: ({ url }) => reported.push(`+${url}`), removed: ({ url }) => reported.push(`-${url}`) })
    const hanging = Promise.withResolvers<string>()
    const call = pool.call(() => hanging.promise, as('answered'))
    pool.replace([c])
    expect(reported).toEqual(['+http://a', '+http://b', '+http://c', '-http://a', '-http://b'])
    expect(pool.inFlight(a) + pool.inFlight(b)).toBe(1)
    hanging.resolve('done')
    expect(await call).toBe('done')
    expect(await triedUrls(pool)).toEqual([c.url])
  })

  it('tries a core at most once per call, and not after its removal, for any sequence of events', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('replace' as const), cores: fc.uniqueArray(fc.constantFrom(a, b, c)) }),
      fc.record({ do: fc.constant('call' as const), fails: fc.subarray([a, b, c]) }),
      fc.record({ do: fc.constant('mark' as const), core: fc.constantFrom(a, b, c) }),
    )
    await forAllAsync([fc.array(step, { maxLength: 30 })], {}, async (steps) => {
      const pool = createCorePool({ cores: [a, b, c] })
      let present = [a, b, c]
      for (const each of steps) {
        if (each.do === 'mark') pool.markAlive(each.core)
        else if (each.do === 'replace') {
          present = each.cores
          pool.replace(present)
        } else {
          const tried: CoreNode[] = []
          const attempt = async (core: CoreNode) => {
            tried.push(core)
            if (each.fails.includes(core)) throw new Error('down')
          }
          await pool.call(attempt, as('repeatable')).catch(() => {})
          expect(new Set(tried).size).toBe(tried.length)
          for (const core of tried) expect(present).toContain(core)
          expect([a, b, c].map((core) => pool.inFlight(core))).toEqual([0, 0, 0])
        }
      }
    })
  })
})
