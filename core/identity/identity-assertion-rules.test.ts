import { describe, expect, it } from 'vitest'
import { type AssertionChange, signAssertion } from '../../test/support/assertion.ts'
import { readCoreConfig } from '../config.ts'
import type { ServiceError } from '../errors.ts'
import { createKeyring } from '../keys/keyring.ts'
import { createSecretBox } from '../keys/secret-box.ts'
import { bareCore } from '../test/core-with.ts'
import type { Installation } from '../workspaces/model.ts'
import { verifyAssertion } from './identity-assertions.ts'

const now = Date.UTC(2030, 0, 1)
const time = now / 1000
const secretBox = createSecretBox(createKeyring([{ kid: 'k1', secret: new Uint8Array(32).fill(7) }]))
const siteKey = 'pk_shop'
const current = { kid: 'key_2', secret: 'the secret of the site, which has well over 32 bytes' }
const installation = {
  publicSiteKey: siteKey,
  identitySecrets: [{ kid: current.kid, sealed: secretBox.seal(current.secret) }],
} as Installation

const core = bareCore({ config: readCoreConfig({}), secretBox, now: () => now })

const sign = (change?: AssertionChange, key = current) => signAssertion({ siteKey, ...key, now }, change)
const verify = (assertion: string) => verifyAssertion(core, assertion, installation)

describe('an invalid identity assertion is rejected with the failed rules, for', () => {
  const rulesOf = (assertion: string) =>
    verify(assertion).then(
      () => [],
      ({ issues }: ServiceError) => {
        for (const { path } of issues) expect(path).toBe('/assertion')
        return issues.map(({ rule }) => rule)
      },
    )

  it.each<[string, AssertionChange, string[]]>([
    ['another audience', { claims: { aud: 'pk_secret' } }, ['audience']],
    ['no audience', { claims: { aud: undefined } }, ['audience']],
    ['no subject', { claims: { sub: undefined } }, ['subject']],
    ['a short nonce', { claims: { jti: 'secret' } }, ['nonce']],
    ['a long lifetime', { claims: { exp: time + 301 } }, ['lifetime']],
    ['no exp', { claims: { exp: undefined } }, ['lifetime']],
    ['an exp before iat', { claims: { exp: time - 1 } }, ['lifetime']],
    ['iat in milliseconds', { claims: { iat: now, exp: now + 60 } }, ['clock']],
    ['iat in the future', { claims: { iat: time + 31, exp: time + 90 } }, ['clock']],
    ['nbf in the future', { claims: { nbf: time + 31 } }, ['clock']],
    ['a nested context', { claims: { ctx: { secret: { a: 1 } } } }, ['context']],
    ['a long name', { claims: { name: 'a'.repeat(129) } }, ['context']],
    ['another typ', { header: { typ: 'JWT' } }, ['type']],
    ['an unknown kid', { header: { kid: 'key_0' } }, ['signature']],
    ['another algorithm', { header: { alg: 'HS512' }, hash: 'sha512' }, ['signature']],
    [
      'several faults',
      { claims: { aud: 'pk_other', sub: '', exp: time + 600, jti: 1, ctx: [] } },
      ['audience', 'subject', 'nonce', 'lifetime', 'context'],
    ],
  ])('%s', async (_, change, rules) => {
    expect(await rulesOf(sign(change))).toEqual(rules)
  })

  it('text that is no JWS, a payload that is no object, and a long text', async () => {
    for (const text of ['', 'secret', 'a.b', 'a.b.c', 'a'.repeat(9000)]) expect(await rulesOf(text)).toEqual(['type'])
  })

  it('a wrong signature, and none of the rules about claims, because anyone can write unsigned claims', async () => {
    const claims = { aud: 'pk_other', sub: '' }
    expect(
      await rulesOf(sign({ claims }, { ...current, secret: 'another secret, which has well over 32 bytes' })),
    ).toEqual(['signature'])
  })
})
