import { describe, expect, it } from 'vitest'
import { publicV4, publicV6, refusedV4, refusedV6 } from '../../test/support/addresses.ts'
import { CidrError, createAddressCheck } from './addresses.ts'

const isAddressAllowed = createAddressCheck({ allowedCidrs: [] })

describe('the address check', () => {
  it.each([...refusedV4, ...refusedV6])('the address check rejects %s', (address) => {
    expect(isAddressAllowed(address)).toBe(false)
  })

  // 169.25.40.23 has the digits of the metadata address 169.254.0.23, but is public.
  it.each([...publicV4, ...publicV6, '169.25.40.23'])('the address check allows the public address %s', (address) => {
    expect(isAddressAllowed(address)).toBe(true)
  })

  it.each([
    '',
    'localhost',
    'example.com',
    '8.8.8',
    '8.8.8.8.8',
    '010.8.8.8',
    '134744072',
    '0x8.8.8.8',
    '8.8.8.8 ',
    '8.8.8.8:80',
    '[2a00::1]',
    '2a00::1%eth0',
    '2a00:::1',
    '8.8.8.256',
  ])('the address check rejects %j, which is not an address in its usual notation', (text) => {
    expect(isAddressAllowed(text)).toBe(false)
  })
})

describe('allowed ranges', () => {
  it('allowed ranges allow only addresses inside the range', () => {
    const wider = createAddressCheck({ allowedCidrs: ['10.1.0.0/16', '127.0.0.1/32', 'fd12::/16'] })
    expect(['10.1.2.3', '127.0.0.1', 'fd12::7', '8.8.8.8'].filter(wider)).toHaveLength(4)
    expect(['10.2.0.1', '127.0.0.2', 'fd13::7', '::1', '::ffff:10.1.2.3'].filter(wider)).toEqual([])
  })

  it.each([
    ['169.254.169.254', '169.254.0.0/16'],
    ['169.254.170.2', '169.254.0.0/16'],
    ['100.100.100.200', '100.64.0.0/10'],
    ['192.0.0.192', '192.0.0.0/24'],
    ['168.63.129.16', '168.63.129.16/32'],
    ['168.63.129.16', '0.0.0.0/0'],
    ['fd00:ec2::254', 'fd00::/8'],
    ['fd00:ec2:0:0:0:0:0:254', 'fd00:ec2::254/128'],
    ['fd20:ce::254', '::/0'],
    ['::ffff:169.254.169.254', '::/0'],
    ['::ffff:a9fe:a9fe', '::ffff:0:0/96'],
    ['::169.254.169.254', '::/0'],
    ['64:ff9b::a9fe:a9fe', '64:ff9b::/96'],
    ['2002:a9fe:a9fe::1', '2002::/16'],
    ['fe80::1%eth0', 'fe80::/10'],
  ])('allowed ranges do not allow %s, although it is in %s', (address, cidr) => {
    expect(createAddressCheck({ allowedCidrs: [cidr] })(address)).toBe(false)
  })

  it.each([
    '169.254.169.253',
    '169.254.169.123',
    '169.254.170.23',
    '169.254.0.23',
    '169.254.10.10',
    '100.100.2.136',
    '100.100.2.138',
    'fd00:ec2::253',
    'fd00:ec2::123',
    'fd00:ec2::23',
    'fd00:42::42',
  ])('allowed ranges do not allow the metadata address %s', (address) => {
    expect(createAddressCheck({ allowedCidrs: ['0.0.0.0/0', '::/0'] })(address)).toBe(false)
  })

  it.each([
    '',
    '10.0.0.0',
    '10.0.0.0/',
    '10.0.0.0/8.5',
    '10.0.0.0/0x8',
    '10.0.0.0/+8',
    '10.0.0.0/33',
    '10.0.0.1/8',
    '10.0/8',
    'fd00::/129',
    'fd00::1/8',
    'a/8',
    '10.0.0.0/8/8',
  ])('allowed ranges cause an error that names the invalid range %j', (cidr) => {
    expect(() => createAddressCheck({ allowedCidrs: [cidr] })).toThrow(CidrError)
    expect(() => createAddressCheck({ allowedCidrs: [cidr] })).toThrow(expect.objectContaining({ name: 'CidrError' }))
    expect(() => createAddressCheck({ allowedCidrs: [cidr] })).toThrow(JSON.stringify(cidr))
  })
})
