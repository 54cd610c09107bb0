import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createAddressJudge } from './addresses.ts'
import { createNameService } from './name-service.ts'
import { createResolver, DestinationBlockedError, type Lookup, NameError } from './resolve.ts'
import { oddSpellings, publicV4, publicV6, refusedV4, refusedV6 } from './test-addresses.ts'

const judge = createAddressJudge({ allowedCidrs: [] })
const [goodV4 = '', goodV6 = ''] = [publicV4[4], publicV6[5]]

/** A name service whose only name has these addresses, at each look-up the next ones. */
function namesOf(...answers: string[][]) {
  let call = 0
  const asked: string[] = []
  const lookup: Lookup = async (hostname) => {
    asked.push(hostname)
    const addresses = answers[Math.min(call++, answers.length - 1)] ?? []
    return addresses.map((address) => ({ address, family: isIP(address) as 4 | 6 }))
  }
  return { asked, resolver: createResolver({ judge, lookup }) }
}

describe('a name', () => {
  it('has all its addresses, when each is allowed', async () => {
    const { resolver, asked } = namesOf([goodV4, goodV6])
    expect(await resolver.resolve('crm.example')).toEqual([
      { address: goodV4, family: 4 },
      { address: goodV6, family: 6 },
    ])
    expect(asked).toEqual(['crm.example'])
  })

  it.each([...refusedV4, ...refusedV6])('with the address %s is refused, alone, first or last', async (address) => {
    for (const answer of [[address], [address, goodV4], [goodV6, goodV4, address]]) {
      await expect(namesOf(answer).resolver.resolve('crm.example')).rejects.toThrow(DestinationBlockedError)
    }
  })

  it('is looked up again each time, so an answer that flips is refused', async () => {
    const { resolver, asked } = namesOf([goodV4], ['127.0.0.1'])
    expect(await resolver.resolve('crm.example')).toHaveLength(1)
    await expect(resolver.resolve('crm.example')).rejects.toThrow(DestinationBlockedError)
    expect(asked).toHaveLength(2)
  })

  it('without an address is not found', async () => {
    await expect(namesOf([]).resolver.resolve('crm.example')).rejects.toMatchObject({ reason: 'not_found' })
  })

  it('is not waited for once the signal is aborted', async () => {
    const resolver = createResolver({ judge, lookup: () => new Promise(() => {}) })
    const abort = new AbortController()
    const resolving = resolver.resolve('crm.example', abort.signal)
    abort.abort(new Error('too late'))
    await expect(resolving).rejects.toThrow('too late')
    await expect(resolver.resolve('crm.example', abort.signal)).rejects.toThrow('too late')
  })
})

describe('a literal address', () => {
  it.each([...refusedV4, ...refusedV6, ...refusedV6.map((address) => `[${address}]`)])(
    '%s is refused without a look-up',
    async (address) => {
      const { resolver, asked } = namesOf([goodV4])
      await expect(resolver.resolve(address)).rejects.toThrow(DestinationBlockedError)
      expect(asked).toEqual([])
    },
  )

  it.each(oddSpellings)('spelt %s in a URL is refused', async (host) => {
    const { resolver, asked } = namesOf([goodV4])
    await expect(resolver.resolve(new URL(`http://${host}/`).hostname)).rejects.toThrow(DestinationBlockedError)
    expect(asked).toEqual([])
  })

  it('that is public is its own answer', async () => {
    const { resolver } = namesOf(['127.0.0.1'])
    expect(await resolver.resolve(goodV4)).toEqual([{ address: goodV4, family: 4 }])
    expect(await resolver.resolve(`[${goodV6}]`)).toEqual([{ address: goodV6, family: 6 }])
  })
})

describe('the name service of the machine', () => {
  const folder = mkdtemp(join(tmpdir(), 'hosts-'))
  afterAll(async () => rm(await folder, { recursive: true }))

  it('knows the hosts file and the loopback names', async () => {
    const hostsFile = join(await folder, 'hosts')
    await writeFile(hostsFile, '# names\n10.0.0.7 receiver other # here\nfd00::7\treceiver\nbroken line\n')
    const lookup = createNameService({ hostsFile })
    expect(await lookup('Receiver.')).toEqual([
      { address: '10.0.0.7', family: 4 },
      { address: 'fd00::7', family: 6 },
    ])
    expect(await lookup('other')).toEqual([{ address: '10.0.0.7', family: 4 }])
    expect((await lookup('shop.localhost')).map(({ address }) => address)).toEqual(['127.0.0.1', '::1'])
    await expect(createResolver({ judge, lookup }).resolve('localhost')).rejects.toThrow(DestinationBlockedError)
  })

  it('says that a name does not exist, or that it cannot be known', async () => {
    const lookup = createNameService({ hostsFile: join(await folder, 'none') })
    await expect(lookup('nowhere.invalid')).rejects.toThrow(NameError)
  })
})
