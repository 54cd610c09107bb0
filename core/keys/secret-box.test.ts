import { describe, expect, it } from 'vitest'
import { createKeyring } from './keyring.ts'
import { createSecretBox } from './secret-box.ts'

const boxOf = (kid: string, fill: number) =>
  createSecretBox(createKeyring([{ kid, secret: new Uint8Array(32).fill(fill) }]))
const box = boxOf('k1', 1)

/** Changes the last part of the sealed text, which is the ciphertext with its tag. */
function withBody(sealed: string, change: (bytes: Buffer) => Buffer) {
  const [kid, nonce, body = ''] = sealed.split('.')
  return [kid, nonce, change(Buffer.from(body, 'base64url')).toString('base64url')].join('.')
}

describe('sealed secrets', () => {
  it.each(['', 'a', 'a secret with ümlauts and 🔑'])(
    'a sealed secret opens to its text %j, and sealing again gives other bytes',
    (text) => {
      const sealed = box.seal(text)
      expect(box.open(sealed)).toBe(text)
      expect(box.seal(text)).not.toBe(sealed)
    },
  )

  it('a sealed secret does not open if any byte of its ciphertext or tag was changed', () => {
    const sealed = box.seal('secret')
    const [, , body = ''] = sealed.split('.')
    for (let index = 0; index < Buffer.from(body, 'base64url').length; index += 1) {
      const changed = withBody(sealed, (bytes) => bytes.fill(bytes[index]! ^ 1, index, index + 1))
      expect(() => box.open(changed)).toThrow()
    }
  })

  it.each([15, 12, 8, 4, 0])(
    'a sealed secret does not open if its authentication tag was shortened to %i bytes',
    (length) => {
      expect(() => box.open(withBody(box.seal(''), (bytes) => bytes.subarray(0, length)))).toThrow()
    },
  )

  it('a sealed secret does not open with another key, even if that key has the same id', () => {
    const sealed = box.seal('secret')
    expect(() => boxOf('k2', 2).open(sealed)).toThrow('k1')
    expect(() => boxOf('k1', 2).open(sealed)).toThrow()
  })
})
