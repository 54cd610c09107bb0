import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { type AssertionChange, signAssertion } from '../../test/support/assertion.ts'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { brokenBytes, nearlyGood } from '../../test/support/mutations.ts'
import { readCoreConfig } from '../config.ts'
import { ServiceError } from '../errors.ts'
import { createKeyring } from '../keys/keyring.ts'
import { createSecretBox } from '../keys/secret-box.ts'
import { bareCore } from '../test/core-with.ts'
import type { Installation } from '../workspaces/model.ts'
import { verifyAssertion } from './identity-assertions.ts'

const now = Date.UTC(2030, 0, 1)
const time = now / 1000
const secretBox = createSecretBox(createKeyring([{ kid: 'k1', secret: new Uint8Array(32).fill(7) }]))
const siteKey = 'pk_shop'
const current = { kid: 'key_2', secret: 'the second secret, which has well over 32 bytes' }
const before = { kid: 'key_1', secret: 'the first secret, which has well over 32 bytes too' }

const installationWith = (...secrets: { kid: string; secret: string }[]) =>
  ({
    publicSiteKey: siteKey,
    identitySecrets: secrets.map(({ kid, secret }) => ({ kid, sealed: secretBox.seal(secret) })),
  }) as Installation

const core = bareCore({ config: readCoreConfig({}), secretBox, now: () => now })

const sign = (change?: AssertionChange, key = current) => signAssertion({ siteKey, ...key, now }, change)
const verify = (assertion: string, installation = installationWith(current, before)) =>
  verifyAssertion(core, assertion, installation)

const invalid = { code: 'IdentityAssertionInvalid' }
/** The error of an assertion that fails these rules, and no others. */
const failing = (...rules: string[]) => ({ ...invalid, issues: rules.map((rule) => ({ path: '/assertion', rule })) })
const expired = { code: 'IdentityAssertionExpired' }

describe('an identity assertion', () => {
  it('is verified and its claims are returned if it is valid', async () => {
    const claims = { sub: 'customer 42', jti: 'nonce-0001', name: 'Ada', ctx: { plan: 'pro', seats: 3, trial: false } }
    expect(await verify(sign({ claims }))).toEqual({
      externalSubject: 'customer 42',
      displayName: 'Ada',
      context: [
        ['plan', 'pro'],
        ['seats', 3],
        ['trial', false],
      ],
      nonce: 'nonce-0001',
      endsAt: new Date((time + 120 + 30) * 1000),
    })
  })

  it('is accepted if an ordinary JWT library signed it', async () => {
    const token = await new SignJWT({ name: 'Ada', ctx: { plan: 'pro' } })
      .setProtectedHeader({ alg: 'HS256', typ: 'service-visitor-identity+jwt', kid: current.kid })
      .setAudience(siteKey)
      .setSubject('customer-1')
      .setJti('nonce-0003')
      .setIssuedAt(time)
      .setExpirationTime(time + 120)
      .sign(new TextEncoder().encode(current.secret))
    expect(await verify(token)).toMatchObject({ externalSubject: 'customer-1', displayName: 'Ada' })
  })

  it('is accepted with an empty name, an empty context and unknown claims', async () => {
    const verified = await verify(
      sign({ claims: { jti: 'nonce-0002', iss: 'https://shop.example', name: '', ctx: {} } }),
    )
    const present = Object.entries(verified).filter(([, value]) => value !== undefined)
    expect(present.map(([name]) => name).sort()).toEqual(['endsAt', 'externalSubject', 'nonce'])
  })

  it.each<[claims: object, ...rules: string[]]>([
    [{ aud: undefined }, 'audience'],
    [{ aud: ['pk_shop'] }, 'audience'],
    [{ aud: 7 }, 'audience'],
    [{ aud: 'pk_another' }, 'audience'],
    [{ sub: undefined }, 'subject'],
    [{ sub: 42 }, 'subject'],
    [{ sub: null }, 'subject'],
    [{ sub: ['customer-1'] }, 'subject'],
    [{ sub: '' }, 'subject'],
    [{ sub: 'a'.repeat(257) }, 'subject'],
    [{ sub: 'a\u0000b' }, 'subject'],
    [{ sub: '\ud800' }, 'subject'],
    [{ iat: undefined }, 'lifetime'],
    [{ iat: String(time) }, 'lifetime'],
    [{ iat: time + 0.5 }, 'lifetime'],
    [{ iat: -1 }, 'lifetime'],
    [{ iat: time + 31, exp: time + 90 }, 'clock'],
    [{ iat: now, exp: now + 60 }, 'clock'],
    [{ nbf: 'soon' }, 'clock'],
    [{ nbf: time + 31 }, 'clock'],
    [{ nbf: -1 }, 'clock'],
    [{ exp: undefined }, 'lifetime'],
    [{ exp: String(time + 60) }, 'lifetime'],
    [{ exp: null }, 'lifetime'],
    [{ exp: time + 301 }, 'lifetime'],
    [{ exp: time }, 'lifetime'],
    [{ exp: Number.MAX_SAFE_INTEGER }, 'lifetime'],
    [{ jti: undefined }, 'nonce'],
    [{ jti: 12345678 }, 'nonce'],
    [{ jti: 'a'.repeat(7) }, 'nonce'],
    [{ jti: 'a'.repeat(129) }, 'nonce'],
    [{ name: 7 }, 'context'],
    [{ name: null }, 'context'],
    [{ name: 'a'.repeat(129) }, 'context'],
    [{ ctx: 'plan=pro' }, 'context'],
    [{ ctx: ['pro'] }, 'context'],
    [{ ctx: null }, 'context'],
    [{ ctx: { account: { id: 1 } } }, 'context'],
    [{ ctx: { tags: ['a'] } }, 'context'],
    [{ ctx: { plan: null } }, 'context'],
    [{ ctx: { plan: 'a\u0007' } }, 'context'],
    [{ ctx: { '': 'nameless' } }, 'context'],
    [{ ctx: { ['k'.repeat(65)]: 1 } }, 'context'],
    [{ ctx: { text: 'a'.repeat(1015) } }, 'context'],
    [{ ctx: { text: 'ü'.repeat(510) } }, 'context'],
    [{ ctx: Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`k${index}`, index])) }, 'context'],
    [{ ctx: JSON.parse('{"__proto__":"x"}') }, 'context'],
    [
      { aud: 'pk_other', sub: '', exp: time + 600, jti: 1, ctx: [] },
      ...['audience', 'subject', 'nonce', 'lifetime', 'context'],
    ],
  ])('is invalid with the claims %o, and the error names the rule %s', async (claims, ...rules) => {
    await expect(verify(sign({ claims: { ...claims } }))).rejects.toMatchObject(failing(...rules))
  })

  it.each([
    ['sub', 'a'.repeat(256)],
    ['jti', 'a'.repeat(8)],
    ['jti', 'a'.repeat(128)],
    ['name', 'a'.repeat(128)],
    ['iat', time + 30],
    ['nbf', time + 30],
    ['nbf', 0],
    ['exp', time + 300],
    ['ctx', { text: 'a'.repeat(1013) }],
    ['ctx', Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`$k.${index}`, index]))],
  ])('is valid if %s is at its limit (%j)', async (claim, value) => {
    await expect(verify(sign({ claims: { [claim]: value } }))).resolves.toBeDefined()
  })

  it('expires 30 s after its exp', async () => {
    const ending = (exp: number) => sign({ claims: { iat: exp - 60, exp } })
    await expect(verify(ending(time - 29))).resolves.toBeDefined()
    await expect(verify(ending(time - 30))).rejects.toMatchObject(expired)
    await expect(verify(ending(time - 86_400))).rejects.toMatchObject(expired)
  })

  it('is rejected as invalid, not as expired, if it has expired and its signature is wrong', async () => {
    const claims = { iat: time - 600, exp: time - 500 }
    await expect(verify(sign({ claims }, { ...current, secret: before.secret }))).rejects.toMatchObject(invalid)
  })

  it.each<[string, AssertionChange, rule: string]>([
    ['alg none', { header: { alg: 'none' }, hash: 'none' }, 'signature'],
    ['alg none with a signature', { header: { alg: 'none' } }, 'signature'],
    ['HS512', { header: { alg: 'HS512' }, hash: 'sha512' }, 'signature'],
    ['RS256 over an HMAC', { header: { alg: 'RS256' } }, 'signature'],
    ['no signature', { hash: 'none' }, 'signature'],
    ['another typ', { header: { typ: 'JWT' } }, 'type'],
    ['no typ', { header: { typ: undefined } }, 'type'],
    ["an access grant's typ", { header: { typ: 'service-access-grant+jwt' } }, 'type'],
    ['no kid', { header: { kid: undefined } }, 'signature'],
    ['an unknown kid', { header: { kid: 'key_0' } }, 'signature'],
    ['a kid of the wrong type', { header: { kid: ['key_2'] } }, 'signature'],
    ['a critical extension', { header: { crit: ['exp'], exp: 1 } }, 'signature'],
    ['a key of its own', { header: { jwk: { kty: 'oct', k: 'AAAA' } }, hash: 'sha512' }, 'signature'],
  ])('is invalid with %s', async (_, change, rule) => {
    await expect(verify(sign(change))).rejects.toMatchObject(failing(rule))
  })

  it('is invalid with a wrong secret, signature or payload, and the error names no rule of an unsigned claim', async () => {
    const claims = { aud: 'pk_other', sub: '' }
    const signedWrong = sign({ claims }, { ...current, secret: before.secret })
    await expect(verify(signedWrong)).rejects.toMatchObject(failing('signature'))
    const [header, payload, signature = ''] = sign().split('.')
    const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    await expect(verify(`${header}.${payload}.${flipped}`)).rejects.toMatchObject(invalid)
    const other = Buffer.from(JSON.stringify({ sub: 'somebody else' })).toString('base64url')
    await expect(verify(`${header}.${other}.${signature}`)).rejects.toMatchObject(invalid)
  })

  it('is valid, invalid or expired for any claims and any bytes, and never causes another error', async () => {
    const good = {
      aud: siteKey,
      sub: 'customer-1',
      iat: time,
      exp: time + 120,
      jti: 'nonce-0001',
      name: 'Ada',
      ctx: { plan: 'pro' },
    }
    const header = fc.record(
      {
        alg: fc.constantFrom('HS256', 'HS512', 'none', 'RS256', '', null, 7, ['HS256']),
        typ: fc.constantFrom('service-visitor-identity+jwt', 'JWT', null, 1),
        kid: fc.oneof(fc.constantFrom(current.kid, '__proto__', '', null, 1, [current.kid], { a: 1 }), fc.string()),
        crit: fc.constantFrom([], ['b64'], 'b64', null),
        b64: fc.boolean(),
        zip: fc.constant('DEF'),
        jku: fc.webUrl(),
        jwk: fc.constant({ kty: 'oct', k: 'AAAA' }),
        x5c: fc.constant(['AAAA']),
      },
      { requiredKeys: [] },
    )
    const signed = fc.record({ header, claims: nearlyGood(good) }).map(({ header: more, claims }) => {
      const input = [{ alg: 'HS256', typ: 'service-visitor-identity+jwt', kid: current.kid, ...more }, claims]
        .map((part) => Buffer.from(JSON.stringify(part) ?? '').toString('base64url'))
        .join('.')
      return `${input}.${createHmac('sha256', current.secret).update(input).digest('base64url')}`
    })
    const broken = fc
      .oneof(signed, fc.constant(sign()))
      .chain((token) => brokenBytes(Buffer.from(token)))
      .map((bytes) => bytes.toString('latin1'))
    await forAllAsync([fc.oneof(signed, broken)], runs(1_000, 10), async (token) => {
      const outcome = await verify(token).catch((error: unknown) => error)
      if (outcome instanceof ServiceError) {
        expect([invalid.code, expired.code]).toContain(outcome.code)
        expect(outcome.issues.length > 0).toBe(outcome.code === invalid.code)
      } else expect(outcome).toMatchObject({ externalSubject: expect.any(String), nonce: expect.any(String) })
    })
  })

  it('is valid with the previous secret until a rotation removes that secret', async () => {
    const old = sign({}, before)
    await expect(verify(old, installationWith(before))).resolves.toBeDefined()
    await expect(verify(old, installationWith(current, before))).resolves.toBeDefined()
    await expect(
      verify(old, installationWith({ kid: 'key_3', secret: 'x'.repeat(40) }, current)),
    ).rejects.toMatchObject(invalid)
  })

  it.each(['', '.', '..', 'a.b', 'a.b.c', 'not a token', `${'a'.repeat(9000)}.b.c`, '{"sub":"x"}', '\u0000'])(
    'is invalid if it is not a token (%j)',
    async (text) => {
      await expect(verify(text)).rejects.toMatchObject(failing('type'))
    },
  )

  it.each(['[]', '"text"', 'null', '7', '{', ''])('is invalid if its payload is %s', async (payload) => {
    await expect(verify(signPayload(Buffer.from(payload)))).rejects.toMatchObject(failing('type'))
  })

  it('is invalid if its payload is not UTF-8', async () => {
    const claims = { aud: siteKey, sub: 'customer?1', iat: time, exp: time + 60, jti: 'nonce-of-9' }
    const payload = Buffer.from(JSON.stringify(claims))
    await expect(verify(signPayload(payload))).resolves.toBeDefined()
    payload[payload.indexOf('?')] = 0xff
    await expect(verify(signPayload(payload))).rejects.toMatchObject(invalid)
  })

  it('is accepted with 8192 characters and rejected with more', async () => {
    const sized = (length: number) => {
      for (let pad = 5500; ; pad += 1) {
        const assertion = sign({ claims: { pad: 'x'.repeat(pad) } })
        if (assertion.length >= length) return assertion
      }
    }
    const longest = sized(8192)
    expect(longest).toHaveLength(8192)
    await expect(verify(longest)).resolves.toBeDefined()
    await expect(verify(sized(8193))).rejects.toMatchObject(invalid)
  })

  it('fails with the error of the secret box if the secret cannot be decrypted', async () => {
    const open = () => {
      throw new Error('no key')
    }
    const broken = bareCore({ config: readCoreConfig({}), secretBox: { open }, now: () => now })
    await expect(verifyAssertion(broken, sign(), installationWith(current))).rejects.toThrow('no key')
  })
})

/** Signs any bytes as the payload of an assertion. */
function signPayload(payload: Buffer): string {
  const [header] = sign().split('.')
  const input = `${header}.${payload.toString('base64url')}`
  return `${input}.${createHmac('sha256', current.secret).update(input).digest('base64url')}`
}
