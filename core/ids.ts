import { randomBytes, randomFillSync } from 'node:crypto'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

export type IdPrefix =
  | 'ws'
  | 'con'
  | 'pk'
  | 'ses'
  | 'cnv'
  | 'vis'
  | 'msg'
  | 'key'
  | 'typ'
  | 'lead'
  | 'frm'
  | 'cmd'
  | 'scr'
  | 'sub'
  | 'dlv'
  | 'att'
  | 'ers'

const bytesPerId = 26
/** Random bytes in stock: one large request costs little more than a small one. */
const random = Buffer.allocUnsafe(bytesPerId * 128)
let used = random.length

/**
 * Returns a prefix with 130 random bits in lower-case letters and digits, for example `ses_3k8…`.
 */
export function newId(prefix: IdPrefix): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  used += bytesPerId
  return plannedId(prefix, random.subarray(used - bytesPerId, used))
}

/**
 * Returns an id in the same form from a keyed hash, so that every run of an operation gets the same
 * id.
 */
export function plannedId(prefix: IdPrefix, bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes.subarray(0, bytesPerId)) text += alphabet[byte & 31]
  return `${prefix}_${text}`
}

/** Returns the identity of an event log. A position is valid only in the log of its epoch. */
export function newEpoch(): string {
  return randomBytes(5).toString('hex')
}
