import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAddressCheck } from './addresses.ts'
import { createNameService, createResolver, DestinationBlockedError, NameError } from './resolve.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hosts-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Answer of a DNS server: addresses, or an error code. */
type Answer = string[] | string

/** A name service whose DNS servers give the same answer for every name. */
function nameService(
  { hostsFile = join(folder, 'none'), now = () => 0, a = 'ENOTFOUND', aaaa = 'ENOTFOUND' } = {} as {
    hostsFile?: string
    now?: () => number
    a?: Answer
    aaaa?: Answer
  },
) {
  const asked: string[] = []
  const answer = async (name: string, given: Answer) => {
    asked.push(name)
    if (typeof given === 'string') throw Object.assign(new Error('no answer'), { code: given })
    return given
  }
  const resolve4 = (name: string) => answer(name, a)
  const resolve6 = (name: string) => answer(name, aaaa)
  let made = 0
  const newResolver = () => {
    made += 1
    return { resolve4, resolve6 } as never
  }
  return { asked, made: () => made, lookup: createNameService({ hostsFile, now, newResolver }) }
}

describe('the name service', () => {
  it('the name service resolves names in the hosts file without a DNS query', async () => {
    const hostsFile = join(folder, 'hosts')
    const lines = [
      '# names',
      '10.0.0.7 receiver other # here',
      'fd00::7\t\treceiver',
      '  10.0.0.8 indented  ',
      '10.0.0.9 tail#comment',
      'broken line',
      '',
    ]
    await writeFile(hostsFile, lines.join('\n'))
    const { lookup, asked } = nameService({ hostsFile })
    expect(await lookup('Receiver.')).toEqual([
      { address: '10.0.0.7', family: 4 },
      { address: 'fd00::7', family: 6 },
    ])
    expect(await lookup('other')).toEqual([{ address: '10.0.0.7', family: 4 }])
    expect(await lookup('indented')).toEqual([{ address: '10.0.0.8', family: 4 }])
    expect(await lookup('tail')).toEqual([{ address: '10.0.0.9', family: 4 }])
    expect(asked).toEqual([])
    for (const name of ['here', 'line', 'names', '.', 'comment', 'receiver..'])
      await expect(lookup(name)).rejects.toMatchObject({ reason: 'not_found' })
    expect(asked.filter((name) => name === 'receiver.')).toHaveLength(2)
  })

  it.each(['localhost', 'LOCALHOST.', 'shop.localhost'])(
    'the name service resolves %s to the loopback addresses',
    async (name) => {
      const { lookup, asked } = nameService()
      expect(await lookup(name)).toEqual([
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ])
      const isAddressAllowed = createAddressCheck({ allowedCidrs: [] })
      await expect(createResolver({ isAllowed: isAddressAllowed, lookup }).resolve(name)).rejects.toThrow(
        DestinationBlockedError,
      )
      expect(asked).toEqual([])
    },
  )

  it.each<[string, Answer, Answer, string[]]>([
    ['A and AAAA records', ['8.8.8.8', '8.8.4.4'], ['2a00::1'], ['4 8.8.8.8', '4 8.8.4.4', '6 2a00::1']],
    ['A records only', ['8.8.8.8'], 'ENODATA', ['4 8.8.8.8']],
    ['AAAA records only', 'ETIMEOUT', ['2a00::1'], ['6 2a00::1']],
  ])('the name service returns the addresses of a name with %s', async (_, a, aaaa, addresses) => {
    const found = await nameService({ a, aaaa }).lookup('notlocalhost')
    expect(found.map(({ address, family }) => `${family} ${address}`)).toEqual(addresses)
  })

  it.each<[Answer, Answer, string]>([
    ['ENOTFOUND', 'ENOTFOUND', 'not_found'],
    ['ENODATA', 'EBADNAME', 'not_found'],
    [[], 'ENODATA', 'not_found'],
    [[], [], 'not_found'],
    ['ETIMEOUT', 'ENODATA', 'failed'],
    ['ENOTFOUND', 'ESERVFAIL', 'failed'],
    [[], 'ECONNREFUSED', 'failed'],
  ])('with the A answer %j and the AAAA answer %j, the name service fails with %s', async (a, aaaa, reason) => {
    const error = await nameService({ a, aaaa })
      .lookup('crm.example')
      .catch((each: unknown) => each)
    expect(error).toBeInstanceOf(NameError)
    expect(error).toMatchObject({ reason })
  })

  it('the name service reads the hosts file and the DNS settings again after 5 s', async () => {
    const hostsFile = join(folder, 'changing')
    const addresses = async () => (await lookup('receiver')).map(({ address }) => address)
    let time = 1_000_000
    const { lookup, made } = nameService({ hostsFile, now: () => time })
    await writeFile(hostsFile, '10.0.0.1 receiver')
    expect(await addresses()).toEqual(['10.0.0.1'])
    await writeFile(hostsFile, '10.0.0.2 receiver')
    time += 5_000
    expect([await addresses(), made()]).toEqual([['10.0.0.1'], 1])
    time += 1
    expect([await addresses(), made()]).toEqual([['10.0.0.2'], 2])
  })

  it('the name service queries the DNS servers of the machine by default', async () => {
    const lookup = createNameService({ hostsFile: join(folder, 'none') })
    await expect(lookup('nowhere.invalid')).rejects.toThrow(NameError)
  })
})
