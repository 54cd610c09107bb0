import { describe, expect, it } from 'vitest'
import { createAddressCheck } from '../../platform/addresses/addresses.ts'
import { createResolver, type Lookup, NameError } from '../../platform/addresses/resolve.ts'
import { bareCore } from '../test/core-with.ts'
import { codeOf } from '../test/cores.ts'
import { isAllowedDestination, resolverOf } from './destination-check.ts'

function isAllowed(lookup: Lookup) {
  const core = bareCore({})
  resolverOf.set(core, createResolver({ isAllowed: createAddressCheck({ allowedCidrs: [] }), lookup }))
  return isAllowedDestination(core, new URL('https://crm.example/leads'))
}
const resolvingTo =
  (address: string): Lookup =>
  async () => [{ address, family: 4 }]
const failing =
  (error: Error): Lookup =>
  () =>
    Promise.reject(error)

describe('the check of a destination', () => {
  it('allows a public address, and gives the same answer for a private address and a name without an address', async () => {
    expect(await isAllowed(resolvingTo('93.184.215.14'))).toBe(true)
    expect(await isAllowed(resolvingTo('10.0.0.1'))).toBe(false)
    expect(await isAllowed(failing(new NameError('not_found')))).toBe(false)
  })

  it('fails with ServiceUnavailable, which clients retry, if the name service does not answer', async () => {
    expect(await codeOf(isAllowed(failing(new NameError('failed'))))).toBe('ServiceUnavailable')
    expect(await codeOf(isAllowed(failing(new DOMException('late', 'TimeoutError'))))).toBe('ServiceUnavailable')
  })
})
