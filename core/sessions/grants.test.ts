import { SignJWT } from 'jose'
import { describe, expect, it, vi } from 'vitest'
import { createKeyring, type SecretKey } from '../keys/keyring.ts'
import { bareCore } from '../test/core-with.ts'
import { grantsOf } from './grants.ts'

const key = (kid: string, fill: number): SecretKey => ({ kid, secret: new Uint8Array(32).fill(fill) })
const claims = { sid: 'ses_1', org: 'https://shop.example', iat: 1_700_000_000, exp: 1_700_000_900 }
const keyring = createKeyring([key('k1', 1)])
const grantsWith = (keys: typeof keyring) => grantsOf(bareCore({ keyring: keys }))
const grants = grantsWith(keyring)

async function forged(
  header: Record<string, unknown>,
  payload: Record<string, unknown> = {},
  secret = keyring.current('access-grant').key,
) {
  return new SignJWT({ ...claims, aud: 'service.widget.public-api', ...payload })
    .setProtectedHeader({ alg: 'HS256', typ: 'service-access-grant+jwt', kid: 'k1', ...header })
    .sign(secret)
}

describe('access grants', () => {
  it('contain the signed claims, and equal claims give equal grants', async () => {
    const grant = await grants.sign(claims)
    expect(await grants.verify(grant)).toEqual({ ...claims, aud: 'service.widget.public-api' })
    expect(await grants.sign(claims)).toBe(grant)
  })

  it('are accepted if an earlier version signed them with a connection claim', async () => {
    expect(await grants.verify(await forged({}, { con: 'con_1' }))).toMatchObject({ sid: 'ses_1' })
  })

  it('stay valid after a new key was added, until the key that signed them is removed', async () => {
    const grant = await grants.sign(claims)
    await expect(grantsWith(createKeyring([key('k2', 2), key('k1', 1)])).verify(grant)).resolves.toMatchObject({
      sid: 'ses_1',
    })
    await expect(grantsWith(createKeyring([key('k2', 2)])).verify(grant)).rejects.toMatchObject({
      code: 'GrantInvalid',
    })
  })

  it.each([
    ['another type', () => forged({ typ: 'JWT' })],
    ['another audience', () => forged({}, { aud: 'service.workspace' })],
    ['another key', () => forged({}, {}, new Uint8Array(32).fill(9))],
    ['an unknown key id', () => forged({ kid: 'unknown' })],
    ['no key id', () => forged({ kid: undefined })],
    ['another algorithm', () => forged({ alg: 'HS512' })],
    ['a claim missing', () => forged({}, { org: undefined })],
    ['a claim of another type', () => forged({}, { exp: 'tomorrow' })],
    ['invalid parts', async () => 'a.b.c'],
    ['no parts', async () => 'nonsense'],
    ['excessive length', async () => 'x'.repeat(100_000)],
    [
      'no signature (alg: none)',
      async () => {
        const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
        return `${encode({ alg: 'none', typ: 'service-access-grant+jwt', kid: 'k1' })}.${encode({ ...claims, aud: 'service.widget.public-api' })}.`
      },
    ],
  ])('are invalid with %s', async (_, make) => {
    await expect(grants.verify(await make())).rejects.toMatchObject({ code: 'GrantInvalid' })
  })
})

describe('the verification of a grant', () => {
  const findingWith = (find: typeof keyring.find) => grantsWith({ ...keyring, find })

  it('is cached for repeated requests with the same grant', async () => {
    const find = vi.fn(keyring.find)
    const { verify } = findingWith(find)
    const [grant, other] = [await grants.sign(claims), await grants.sign({ ...claims, sid: 'ses_2' })]
    for (const each of [grant, other, grant, other]) expect((await verify(each)).org).toBe(claims.org)
    expect(find).toHaveBeenCalledTimes(2)
  })

  it('accepts 2048 characters and rejects more', async () => {
    const sized = async (length: number) => {
      for (let pad = 1200; ; pad += 1) {
        const grant = await forged({}, { pad: 'x'.repeat(pad) })
        if (grant.length >= length) return grant
      }
    }
    const longest = await sized(2048)
    expect(longest).toHaveLength(2048)
    await expect(grants.verify(longest)).resolves.toMatchObject(claims)
    await expect(grants.verify(await sized(2049))).rejects.toMatchObject({ code: 'GrantInvalid' })
  })

  it('fails with the error that the keyring throws', async () => {
    const { verify } = findingWith(() => {
      throw new Error('no keys')
    })
    await expect(verify(await grants.sign(claims))).rejects.toThrow('no keys')
  })
})

describe('renewal tokens', () => {
  it('are accepted only for their session and generation, also after a newer key was added', () => {
    const token = grants.renewalToken('ses_1', 3)
    expect(grants.isRenewalToken(token, 'ses_1', 3)).toBe(true)
    expect(grants.isRenewalToken(token, 'ses_1', 4)).toBe(false)
    expect(grants.isRenewalToken(token, 'ses_2', 3)).toBe(false)
    expect(grants.isRenewalToken(`${token}x`, 'ses_1', 3)).toBe(false)
    expect(grantsWith(createKeyring([key('k2', 2), key('k1', 1)])).isRenewalToken(token, 'ses_1', 3)).toBe(true)
  })

  it('contain a secret of 256 bits', () => {
    expect(Buffer.from(grants.renewalToken('ses_1', 0).split('.')[1] ?? '', 'base64url')).toHaveLength(32)
  })
})
