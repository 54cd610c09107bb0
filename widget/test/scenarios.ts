/**
 * The scenarios, each a site key of the scenario server. `pk_friendly` behaves; every other one misbehaves in the way its
 * name says and keeps the contract otherwise.
 */
export const scenarios = {
  /** Keeps the contract. */
  pk_friendly: {},
  /** The first answer of POST /messages is lost after the message was accepted. */
  pk_lost_answer: { loseAnswers: 1 },
  /** The event of an accepted message is written before the POST is answered. */
  pk_event_before_answer: { eventBeforeAnswer: true },
  /** The first send gets 429 with `retryAfter` 7. */
  pk_rate_limited: { refuseSends: [{ status: 429, code: 'RateLimited', retryAfter: 7 }] },
  /** The first send gets 429 with a wait too long for a visitor. */
  pk_rate_limited_long: { refuseSends: [{ status: 429, code: 'RateLimited', retryAfter: 600 }] },
  /** The first two sends get 503. */
  pk_unavailable_twice: {
    refuseSends: [
      { status: 503, code: 'ServiceUnavailable' },
      { status: 503, code: 'ServiceUnavailable' },
    ],
  },
  /** The first two sends find the same operation still running. */
  pk_in_progress: {
    refuseSends: [
      { status: 409, code: 'OperationInProgress', retryAfter: 1 },
      { status: 409, code: 'OperationInProgress', retryAfter: 1 },
    ],
  },
  /** The first send is refused for its content. */
  pk_refused: { refuseSends: [{ status: 400, code: 'ValidationFailed', retryable: false }] },
  /** Every send gets 503. */
  pk_unavailable: { refuseSends: Array.from({ length: 100 }, () => ({ status: 503, code: 'ServiceUnavailable' })) },
  /** The first answer of POST /sessions is lost after the session was created. */
  pk_lost_session: { loseSessions: 1 },
  /** Each stream ends after one event. */
  pk_end_after_one: { endAfterEvents: 1 },
  /** Each stream breaks off in the middle of its first event's line, once. */
  pk_cut_event: { cutEvents: 1 },
  /** The first stream opens and then carries nothing, not even heartbeats. */
  pk_half_dead: { silentStreams: 1 },
  /** Every event is written twice. */
  pk_duplicate_event: { repeatEvents: true },
  /** The first live event is not written; the heartbeat tells of it. */
  pk_missed_event: { dropEvents: 1 },
  /** No event is this session's; heartbeats tell of those of others. */
  pk_other_sessions: { dropEvents: 1_000 },
  /** The first event's data is not JSON. */
  pk_unreadable_event: { garbleEvents: 1 },
  /** The first stream opened with a position asks for a reset. */
  pk_reset_once: { resets: 1 },
  /** Every stream asks for a reset. */
  pk_reset_forever: { resets: 1_000 },
  /** A reset that needs a new authentication. */
  pk_reset_reauthenticate: { resets: 1, reauthenticate: true },
  /** GET /events is refused for good. */
  pk_stream_refused: { refuseStreams: [{ status: 403, code: 'SessionRevoked', retryable: false, terminal: true }] },
  /** The first two streams are refused for the moment. */
  pk_stream_unavailable: {
    refuseStreams: [
      { status: 503, code: 'ServiceUnavailable', retryAfter: 4 },
      { status: 429, code: 'RateLimited', retryAfter: 2 },
    ],
  },
  /** The first two renewals fail for the moment. */
  pk_renew_unstable: {
    refuseRenewals: [
      { status: 503, code: 'ServiceUnavailable' },
      { status: 500, code: 'InternalError' },
    ],
  },
  /** The first renewal is answered, but the answer is lost. */
  pk_lost_renewal: { loseRenewals: 1 },
  /** The session is over when the renewal asks. */
  pk_expired_at_renew: { refuseRenewals: [{ status: 401, code: 'SessionExpired', retryable: false, terminal: true }] },
  /** No renewal ever comes through. */
  pk_renew_never: {
    refuseRenewals: Array.from({ length: 1_000 }, () => ({ status: 503, code: 'ServiceUnavailable' })),
  },
  /** Nobody knows the key. */
  pk_unknown: { unknown: true },
} satisfies Record<string, Scenario>

export type SiteKey = keyof typeof scenarios

export interface Refusal {
  status: number
  code: string
  retryable?: boolean
  terminal?: boolean
  /** Seconds. */
  retryAfter?: number
  issues?: { path: string; rule: string }[]
}

export interface Scenario {
  loseAnswers?: number
  /** Sends are neither taken nor answered before `releaseSends`. */
  stallSends?: number
  /** Answers to sends of accepted messages are withheld until `releaseSends`. */
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
