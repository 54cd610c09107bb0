import type { SearchSource, SourceKind } from './model.ts'

const idPatterns: Record<SourceKind, string> = {
  message: '^[^:]*:[^n]',
  note: '^[^:]*:n:',
  visitor: '^(?!lead_)[^:]*$',
  lead: '^lead_[^:]*$',
}

/**
 * `<conversation>:<sequence>` for a message, `<conversation>:n:<operation>` for a note, the session id for
 * a visitor, and the lead id for a lead.
 */
export function idOf(source: SearchSource): string {
  switch (source.kind) {
    case 'message':
      return `${source.conversationId}:${source.sequence}`
    case 'note':
      return `${source.conversationId}:n:${source.operationId}`
    case 'visitor':
      return source.sessionId
    case 'lead':
      return source.leadId
  }
}

/** Entries of visitors and leads have a `conversationId`. */
export function sourceOf(id: string, conversationId: string | undefined): SearchSource {
  if (conversationId !== undefined)
    return id.startsWith('lead_')
      ? { kind: 'lead', conversationId, leadId: id }
      : { kind: 'visitor', conversationId, sessionId: id }
  const [owner = '', place = '', ...operation] = id.split(':')
  return place === 'n'
    ? { kind: 'note', conversationId: owner, operationId: operation.join(':') }
    : { kind: 'message', conversationId: owner, sequence: Number(place) }
}

/** Filters entries by their kinds, which their ids tell. */
export function ofKinds(kinds: readonly SourceKind[]): { _id?: { $regex: string } } {
  const isEveryKind = Object.keys(idPatterns).every((kind) => kinds.includes(kind as SourceKind))
  return isEveryKind ? {} : { _id: { $regex: kinds.map((kind) => idPatterns[kind]).join('|') } }
}
