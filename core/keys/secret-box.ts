import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Keyring } from './keyring.ts'

export type SecretBox = ReturnType<typeof createSecretBox>

/** Full length of the authentication tag. Node also accepts shorter tags, which are easier to guess. */
const tagBytes = 16

/** Time in milliseconds for which a repeat of the creating call returns a secret (contract, rule 19). */
const shownMs = 600_000

/** Whether a secret that was created at this time is still returned in plain text. */
export const isShown = (createdAt: Date | undefined, at: Date): boolean =>
  createdAt !== undefined && at.getTime() - createdAt.getTime() < shownMs

/** Returns the id of the key that sealed a secret. */
export const kidOf = (sealed: string): string => sealed.slice(0, sealed.indexOf('.'))

/** Encrypts the secrets that are stored in the database, with AES-256-GCM. */
export function createSecretBox(keyring: Keyring) {
  return {
    /** Returns `<kid>.<nonce>.<ciphertext and tag>`, each part in base64url. */
    seal(plaintext: string) {
      const { kid, key } = keyring.current('encryption')
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(kid))
      const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return [kid, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
    },

    /** Throws when the key is missing or the text was changed. */
    open(text: string) {
      const [kid = '', nonce = '', body = ''] = text.split('.')
      const found = keyring.find('encryption', kid)
      if (!found)
        throw new Error(`secret is sealed with the key ${JSON.stringify(kid)}, which SECRET_KEYS does not contain`)
      const bytes = Buffer.from(body, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', found.key, Buffer.from(nonce, 'base64url'), {
        authTagLength: tagBytes,
      })
        .setAAD(Buffer.from(kid))
        .setAuthTag(bytes.subarray(-tagBytes))
      return Buffer.concat([decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()]).toString('utf8')
    },
  }
}
