import type { MessageInitShape } from '@bufbuild/protobuf'
import type { SuppressionEntrySchema } from '#proto/workspace/v1/workspace_pb.js'
import type { EntryKind } from '../../../contract/suppression-list.ts'
import { countOf } from '../time.ts'

export const kinds: readonly (readonly [EntryKind, string])[] = [
  ['email', 'E-mail address'],
  ['phone', 'Phone number'],
  ['subject', 'Visitor id'],
]

const plurals: Record<EntryKind, [one: string, many: string]> = {
  email: ['# e-mail address', '# e-mail addresses'],
  phone: ['# phone number', '# phone numbers'],
  subject: ['# visitor id', '# visitor ids'],
}

export const countOfKind = (count: number, kind: EntryKind) => countOf(count, ...plurals[kind])
export const wrongKinds: Record<EntryKind, string> = {
  email: 'not an e-mail address',
  phone: 'not a phone number',
  subject: 'not a visitor id',
}
export const kindText = (kind: string) => kinds.find(([known]) => known === kind)?.[1] ?? kind

export function toEntry(kind: EntryKind, value: string): MessageInitShape<typeof SuppressionEntrySchema> {
  return { of: { case: kind, value: value.trim() } }
}
