import { newRandomId } from '../../../browser/platform.ts'
import type { KeyValueStorage } from '../../../browser/storage.ts'
import type { OutboxEntry } from '../messages/outbox.ts'
import type { LeftSession, ReplayReset, SessionContent, SessionEnd, StreamPosition } from '../vocabulary/types.ts'

/** State of a session that only the browser stores. */
export interface SessionNotes {
  position?: StreamPosition
  draft?: string
  readTo?: number
  /** Sequence of the last message that stays hidden, because `resetVisitor` removed the history. */
  hiddenTo?: number
}

/** The stored session that the page resumes after a reload. */
export interface SessionRecord extends SessionNotes {
  clientInstanceId: string
  session?: SessionContent
  times?: GrantTimes
  /** A renewal without a response yet. A repeat must send the same key and input. */
  renewal?: { key: string; lastSeenEventId?: string; askedAtMs: number }
  /** Subject of the identified visitor. Undefined while the visitor is anonymous. */
  subject?: string
  /** Why the session ended. It stays until the visitor or the host page starts a new one. */
  ended?: { event: SessionEnd; about?: ReplayReset }
}

export type SessionRecords = ReturnType<typeof createSessionRecords>

/** Returns the key under which the session of an installation is stored. */
export const sessionRecordKey = (siteKey: string) => `service.widget.1.${siteKey}`

export const featureRecordKey = (siteKey: string) => `${sessionRecordKey(siteKey)}.features`

export function createSessionRecords(storage: KeyValueStorage, siteKey: string) {
  const key = sessionRecordKey(siteKey)
  const outboxKey = `${key}.outbox`
  const leftKey = `${key}.left`

  return {
    /** Returns the stored record. One that is unreadable counts as that of an expired session. */
    read(): SessionRecord | undefined {
      if (storage.getItem(key) === null) return undefined
      const record = parsed<SessionRecord>(key)
      if (isToken(record?.clientInstanceId)) return record!
      return { clientInstanceId: newRandomId(), ended: { event: 'session.expired' } }
    },

    write: (record: SessionRecord) => storage.setItem(key, JSON.stringify(record)),

    /** Deletes everything that is stored of the visitor. Keeps the `clientInstanceId`. */
    forget(kept: Pick<SessionRecord, 'clientInstanceId' | 'draft' | 'ended'>) {
      this.write(kept)
      for (const part of ['outbox', 'features', 'consent']) storage.removeItem(`${key}.${part}`)
    },

    readOutbox(): { sessionId?: string; entries: OutboxEntry[] } {
      const { sessionId, entries } = parsed<{ sessionId: string; entries: OutboxEntry[] }>(outboxKey) ?? {}
      const isSendable = (entry?: OutboxEntry) => isToken(entry?.input?.clientOperationId)
      return { sessionId, entries: Array.isArray(entries) ? entries.filter(isSendable) : [] }
    },

    /** Returns the sessions that a departure has left and could not close. Has what closing them needs. */
    readLeft: () => [parsed<LeftSession[]>(leftKey) ?? []].flat(),

    /** Stores the sessions without anything about their visitors. */
    writeLeft: (left: readonly LeftSession[]) =>
      storage.setItem(leftKey, JSON.stringify(left, ['sessionId', 'renewalToken', 'accessGrant'])),

    writeOutbox(sessionId: string, entries: readonly OutboxEntry[]) {
      if (entries[0]) storage.setItem(outboxKey, JSON.stringify({ sessionId, entries }))
      else storage.removeItem(outboxKey)
    },
  }

  function parsed<Value>(name: string): Value | null | undefined {
    try {
      return JSON.parse(storage.getItem(name) as string)
    } catch {
      return undefined
    }
  }
}

/** Returns true for a text that may be sent in a header. */
export const isToken = (value: unknown) => typeof value === 'string' && /^[!-~]+$/.test(value)

/** Returns false if a field is missing or has another type, for example after a change by other code. */
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

/** Times in milliseconds of the browser's clock. */
export interface GrantTimes {
  renewAtMs: number
  expiresAtMs: number
  /** Time at which the session expires if it is not renewed. */
  endsAtMs: number
}

/**
 * Converts the service's times to the browser's clock, which may be hours off. The difference of
 * the clocks is computed from the grant's `iat` and `askedAtMs`, the time at which the grant was
 * first requested. The grant was issued after `askedAtMs`, so the computed times are never too
 * late. If the grant is unreadable, the clocks are assumed to agree.
 */
export function grantTimes(
  content: Pick<SessionContent, 'accessGrant' | 'renewAfter' | 'expiresAt' | 'renewableUntil'>,
  askedAtMs: number,
): GrantTimes {
  let shiftMs = 0
  try {
    const aheadMs = askedAtMs - JSON.parse(payloadOf(content.accessGrant)).iat * 1_000
    // `iat` is in whole seconds, so a difference below two seconds may come from rounding.
    if (Math.abs(aheadMs) >= 2_000) shiftMs = aheadMs
  } catch {}
  const { renewAfter, expiresAt, renewableUntil } = content
  return {
    renewAtMs: Date.parse(renewAfter) + shiftMs,
    expiresAtMs: Date.parse(expiresAt) + shiftMs,
    endsAtMs: Date.parse(renewableUntil) + shiftMs,
  }
}

/** Returns the decoded payload of a JWS as a binary string. Throws if the token is not a JWS. */
export function payloadOf(token: string): string {
  return atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))
}
