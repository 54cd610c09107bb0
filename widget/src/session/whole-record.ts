import { isToken, type SessionRecord } from './session-record.ts'

/**
 * Returns false if a field that the client reads is missing or has another type, for example
 * because other code of the page has changed the record of a session.
 */
export function isWhole({ session, times, position, renewal, readTo = 0, hiddenTo = 0 }: SessionRecord): boolean {
  try {
    const { sessionId, conversationId, accessGrant, renewalToken, identity, replay } = session!
    const { renewAtMs, expiresAtMs, endsAtMs } = times!
    const tokens = [sessionId, conversationId, accessGrant, renewalToken, identity.state]
    const numbers = [replay.lastSequence, renewAtMs, expiresAtMs, endsAtMs, readTo, hiddenTo]
    if (position) numbers.push(position.sequence)
    if (renewal) {
      tokens.push(renewal.key)
      numbers.push(renewal.askedAtMs)
    }
    for (const id of [position?.lastEventId, renewal?.lastSeenEventId]) if (id !== undefined) tokens.push(id)
    return tokens.every(isToken) && numbers.every(Number.isFinite)
  } catch {
    return false
  }
}
