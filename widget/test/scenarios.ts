/**
 * The site key selects how the scenario server violates the contract. The comment above each key
 * describes the violation.
 */
export const scenarios = {
  /** Follows the contract. */
  pk_friendly: {},
  /** Accepts the first message, but does not answer its POST /messages. */
  pk_lost_answer: { loseAnswers: 1 },
  /** Sends the event of a message before the answer of its POST. */
  pk_event_before_answer: { eventBeforeAnswer: true },
  /** Answers the first send with 429 and a `retryAfter` of 7 s. */
  pk_rate_limited: { refuseSends: [{ status: 429, code: 'RateLimited', retryAfter: 7 }] },
  /**
   * Answers the first send with 429 and a `retryAfter` of 600 s. The outbox, which is the queue of
   * unsent messages, does not wait so long.
   */
  pk_rate_limited_long: { refuseSends: [{ status: 429, code: 'RateLimited', retryAfter: 600 }] },
  /** Answers the first two sends with 503. */
  pk_unavailable_twice: {
    refuseSends: [
      { status: 503, code: 'ServiceUnavailable' },
      { status: 503, code: 'ServiceUnavailable' },
    ],
  },
  /** Answers the first two sends with OperationInProgress. */
  pk_in_progress: {
    refuseSends: [
      { status: 409, code: 'OperationInProgress', retryAfter: 1 },
      { status: 409, code: 'OperationInProgress', retryAfter: 1 },
    ],
  },
  /** Rejects the first send because of its content. */
  pk_refused: { refuseSends: [{ status: 400, code: 'ValidationFailed', retryable: false }] },
  /** Answers every send with 503. */
  pk_unavailable: { refuseSends: Array.from({ length: 100 }, () => ({ status: 503, code: 'ServiceUnavailable' })) },
  /** Creates the first session, but does not answer its POST /sessions. */
  pk_lost_session: { loseSessions: 1 },
  /** Ends each stream after one event. */
  pk_end_after_one: { endAfterEvents: 1 },
  /** Ends the first stream in the middle of an event. */
  pk_cut_event: { cutEvents: 1 },
  /** Sends nothing on the first stream, not even heartbeats. */
  pk_half_dead: { silentStreams: 1 },
  /** Sends every event twice. */
  pk_duplicate_event: { repeatEvents: true },
  /** Does not send the first live event. The sequence number in the next heartbeat shows that an event is missing. */
  pk_missed_event: { dropEvents: 1 },
  /** Sends no events, as if all events were for other sessions. The sequence numbers in the heartbeats still grow. */
  pk_other_sessions: { dropEvents: 1_000 },
  /** Sends invalid JSON as the data of the first event. */
  pk_unreadable_event: { garbleEvents: 1 },
  /** Sends the event `replay.reset.required` on the first stream that has a position. */
  pk_reset_once: { resets: 1 },
  /** Sends one event `replay.reset.required` that demands a new authentication. */
  pk_reset_reauthenticate: { resets: 1, reauthenticate: true },
  /** Refuses the first two streams temporarily. */
  pk_stream_unavailable: {
    refuseStreams: [
      { status: 503, code: 'ServiceUnavailable', retryAfter: 4 },
      { status: 429, code: 'RateLimited', retryAfter: 2 },
    ],
  },
  /** Renews the session, but does not answer the first renewal. */
  pk_lost_renewal: { loseRenewals: 1 },
  /** Ends the session before its first renewal. */
  pk_expired_at_renew: { refuseRenewals: [{ status: 401, code: 'SessionExpired', retryable: false, terminal: true }] },
  /** Refuses the first renewal temporarily. */
  pk_renew_refused_once: { refuseRenewals: [{ status: 503, code: 'ServiceUnavailable' }] },
  /** Refuses every renewal. */
  pk_renew_never: {
    refuseRenewals: Array.from({ length: 1_000 }, () => ({ status: 503, code: 'ServiceUnavailable' })),
  },
  /** Refuses the identification of the first session, because the capability is off. */
  pk_identity_off: { refuseIdentities: [{ status: 404, code: 'RouteNotAdvertised', retryable: false }] },
  /** Rejects the site key as unknown. */
  pk_unknown: { unknown: true },
} satisfies Record<string, Scenario>

export type SiteKey = keyof typeof scenarios

export interface Refusal {
  status: number
  code: string
  retryable?: boolean
  terminal?: boolean
  /** Delay before a retry, in seconds. */
  retryAfter?: number
  issues?: { path: string; rule: string }[]
}

export interface Scenario {
  loseAnswers?: number
  /** Number of sends that wait until `release`. */
  stallSends?: number
  /** Number of accepted sends whose answers wait until `release`. */
  stallAnswers?: number
  loseIdentities?: number
  refuseIdentities?: Refusal[]
  loseSessions?: number
  loseRenewals?: number
  eventBeforeAnswer?: boolean
  refuseSends?: Refusal[]
  refuseStreams?: Refusal[]
  refuseRenewals?: Refusal[]
  endAfterEvents?: number
  cutEvents?: number
  silentStreams?: number
  repeatEvents?: boolean
  dropEvents?: number
  garbleEvents?: number
  resets?: number
  reauthenticate?: boolean
  unknown?: boolean
}
