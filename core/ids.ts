import { randomBytes } from 'node:crypto'

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

/** A prefixed, unguessable identifier of 130 random bits, for example `ses_3k8…`: lower-case letters and digits only. */
export function newId(prefix: IdPrefix): string {
  return plannedId(prefix, randomBytes(26))
}

/** The same form from bytes that are a keyed hash, for what an operation makes once however often it is repeated. */
export function plannedId(prefix: IdPrefix, bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes.subarray(0, 26)) text += alphabet[byte & 31]
  return `${prefix}_${text}`
}

/** What tells one event log from another: a position is only good in the log it was given out for. */
export function newEpoch(): string {
  return randomBytes(5).toString('hex')
}
