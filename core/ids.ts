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
/** Asked for in advance: a single id's worth costs nearly as much as a hundred's. */
const random = Buffer.allocUnsafe(bytesPerId * 128)
let used = random.length

/** A prefixed, unguessable identifier of 130 random bits, for example `ses_3k8…`: lower-case letters and digits only. */
export function newId(prefix: IdPrefix): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  used += bytesPerId
  return plannedId(prefix, random.subarray(used - bytesPerId, used))
}

/** The same form from bytes that are a keyed hash, for what an operation makes once however often it is repeated. */
export function plannedId(prefix: IdPrefix, bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes.subarray(0, bytesPerId)) text += alphabet[byte & 31]
  return `${prefix}_${text}`
}

/** What tells one event log from another: a position is only good in the log it was given out for. */
export function newEpoch(): string {
  return randomBytes(5).toString('hex')
}
