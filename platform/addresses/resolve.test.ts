import { getEventListeners } from 'node:events'
import { isIP } from 'node:net'
import { describe, expect, it } from 'vitest'
import { oddSpellings, publicV4, publicV6, refusedV4, refusedV6 } from '../../test/support/addresses.ts'
import { createAddressCheck } from './addresses.ts'
import { createResolver, DestinationBlockedError, type Lookup, NameError } from './resolve.ts'

const isAddressAllowed = createAddressCheck({ allowedCidrs: [] })
const [goodV4 = '', goodV6 = ''] = [publicV4[4], publicV6[5]]

/** A resolver whose lookups return the given address lists in turn. */
function namesOf(...answers: string[][]) {
  let call = 0
  const asked: string[] = []
  const lookup: Lookup = async (hostname) => {
    asked.push(hostname)
    const addresses = answers[Math.min(call++, answers.length - 1)] ?? []
    return addresses.map((address) => ({ address, family: isIP(address) as 4 | 6 }))
  }
  return { asked, resolver: createResolver({ isAllowed: isAddressAllowed, lookup }) }
}

describe('host names', () => {
  it('host names resolve to all addresses if each is allowed', async () => {
    const { resolver, asked } = namesOf([goodV4, goodV6])
    expect(await resolver.resolve('crm.example')).toEqual([
      { address: goodV4, family: 4 },
      { address: goodV6, family: 6 },
    ])
    expect(asked).toEqual(['crm.example'])
  })

  it.each([...refusedV4, ...refusedV6])(
    'host names are rejected if %s is their only, first or last address',
    async (address) => {
      for (const answer of [[address], [address, goodV4], [goodV6, goodV4, address]]) {
        await expect(namesOf(answer).resolver.resolve('crm.example')).rejects.toThrow(DestinationBlockedError)
      }
    },
  )

  it('host names are looked up and checked on every call', async () => {
    const { resolver, asked } = namesOf([goodV4], ['127.0.0.1'])
    expect(await resolver.resolve('crm.example')).toHaveLength(1)
    await expect(resolver.resolve('crm.example')).rejects.toThrow(DestinationBlockedError)
    expect(asked).toHaveLength(2)
  })

  it('host names without an address are rejected as not found', async () => {
    await expect(namesOf([]).resolver.resolve('crm.example')).rejects.toMatchObject({ reason: 'not_found' })
  })

  it('the resolution of a host name stops as soon as the signal aborts', async () => {
    const resolver = createResolver({ isAllowed: isAddressAllowed, lookup: () => new Promise(() => {}) })
    const abort = new AbortController()
    const resolving = resolver.resolve('crm.example', abort.signal)
    abort.abort(new Error('too late'))
    await expect(resolving).rejects.toThrow('too late')
    await expect(resolver.resolve('crm.example', abort.signal)).rejects.toThrow('too late')
  })

  it('the resolution of a host name leaves no listener on the signal', async () => {
    const { signal } = new AbortController()
    await namesOf([goodV4]).resolver.resolve('crm.example', signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

it.each([
  [new DestinationBlockedError(), 'DestinationBlockedError', 'an address of the destination is not allowed'],
  [new NameError('not_found'), 'NameError', 'the name has no address'],
  [new NameError('failed'), 'NameError', 'the name service failed'],
])('the error %s has the expected name and message', (error, name, message) => {
  expect([error.name, error.message]).toEqual([name, message])
})

describe('literal addresses', () => {
  it.each([...refusedV4, ...refusedV6, ...refusedV6.map((address) => `[${address}]`)])(
    'literal addresses that are not allowed are rejected without a lookup: %s',
    async (address) => {
      const { resolver, asked } = namesOf([goodV4])
      await expect(resolver.resolve(address)).rejects.toThrow(DestinationBlockedError)
      expect(asked).toEqual([])
    },
  )

  it.each(oddSpellings)('literal addresses are rejected if written as %s in a URL', async (host) => {
    const { resolver, asked } = namesOf([goodV4])
    await expect(resolver.resolve(new URL(`http://${host}/`).hostname)).rejects.toThrow(DestinationBlockedError)
    expect(asked).toEqual([])
  })

  it.each(['', '[]', 'no:address', '[1::g]', '8.8.8.8%eth0'])(
    'literal addresses are rejected without a lookup if written as %j',
    async (host) => {
      const { resolver, asked } = namesOf([goodV4])
      await expect(resolver.resolve(host)).rejects.toThrow(DestinationBlockedError)
      expect(asked).toEqual([])
    },
  )

  it('literal addresses are returned unchanged if they are public', async () => {
    const { resolver } = namesOf(['127.0.0.1'])
    expect(await resolver.resolve(goodV4)).toEqual([{ address: goodV4, family: 4 }])
    expect(await resolver.resolve(`[${goodV6}]`)).toEqual([{ address: goodV6, family: 6 }])
  })
})
