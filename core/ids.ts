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
  | 'note'
  | 'key'
  | 'chg'
  | 'typ'
  | 'lead'
  | 'frm'
  | 'cmd'
  | 'scr'
  | 'sub'
  | 'hook'
  | 'dlv'
  | 'att'
  | 'ers'
  | 'rmv'
  | 'op'

const bytesPerId = 26
/** Random bytes in reserve, because many at once cost little more than a few. */
const random = Buffer.allocUnsafe(bytesPerId * 128)
let used = random.length

/** Returns a prefix with 130 random bits, for example `ses_3k8…`. */
export function newId(prefix: IdPrefix): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  used += bytesPerId
  return plannedId(prefix, random.subarray(used - bytesPerId, used))
}

/** Returns an id from the bytes of a keyed hash, so that every run of an operation creates the same id. */
export function plannedId(prefix: IdPrefix, bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes.subarray(0, bytesPerId)) text += alphabet[byte & 31]
  return `${prefix}_${text}`
}

/** Returns the part of an epoch that is stored with the conversation. */
export function newEpoch(): string {
  return randomBytes(storedEpochChars / 2).toString('hex')
}

const storedEpochChars = 10

/**
 * Returns the identity of an event log. A position is valid only in the log with the same epoch. The epoch contains
 * the id of the data's history, so a restored backup makes all positions invalid.
 */
export function epochIn(history: string, storedEpoch: string): string {
  return `${storedEpoch}${history}`
}

export function storedEpochOf(epoch: string): string {
  return epoch.slice(0, storedEpochChars)
}
