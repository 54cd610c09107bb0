/** One rule of the public contract, in our own words. */
export interface Rule {
  id: string
  /** Where the contract says it: a section of the specification (S) or of its completion (C). */
  section: string
  sentence: string
  /** Waits for a part that is still to come; then it needs no test yet. */
  pending?: 'identity' | 'commands' | 'typing' | 'states' | 'forms' | 'page context'
}

type Row = [id: string, sentence: string, pending?: Rule['pending']]

const from = (section: string, rows: Row[]): Rule[] =>
  rows.map(([id, sentence, pending]) => ({ id, section, sentence, ...(pending ? { pending } : {}) }))

/** The table of failures: HTTP status, retryable, terminal. Told here once more, so that a change of the protos shows. */
export const failures: Record<
  string,
  [status: number, retryable: boolean, terminal: boolean, pending?: Rule['pending']]
> = {
  ValidationFailed: [400, false, false],
  WidgetVersionUnsupported: [400, false, true],
  CredentialInUrl: [400, false, false],
  IdempotencyKeyInvalid: [400, false, false],
  IdempotencyKeyMismatch: [400, false, false],
  GrantMissing: [401, false, false],
  GrantInvalid: [401, false, true],
  SessionExpired: [401, false, true],
  SessionClosed: [401, false, true],
  IdentityAssertionInvalid: [401, false, false, 'identity'],
  IdentityAssertionExpired: [401, false, false, 'identity'],
  IdentityAssertionReplayed: [401, false, false, 'identity'],
  OriginNotAllowed: [403, false, true],
  OriginMismatch: [403, false, true],
  SessionRevoked: [403, false, true],
  VisitorBanned: [403, false, true],
  ConnectionDisabled: [403, false, true],
  ConsentRequired: [403, false, false, 'commands'],
  InstallationNotFound: [404, false, true],
  CommandNotFound: [404, false, false, 'commands'],
  RouteNotAdvertised: [404, false, false, 'forms'],
  NotFound: [404, false, false],
  MethodNotAllowed: [405, false, false],
  IdempotencyConflict: [409, false, false],
  CommandAlreadyResolved: [409, false, false, 'commands'],
  OperationInProgress: [409, true, false],
  CommandExpired: [410, false, false, 'commands'],
  PayloadTooLarge: [413, false, false],
  UnsupportedMediaType: [415, false, false],
  RateLimited: [429, true, false],
  InternalError: [500, true, false],
  ServiceUnavailable: [503, true, false],
}

const errorRules: Rule[] = Object.entries(failures).map(([code, [status, retryable, terminal, pending]]) => ({
  id: `E.${code}`,
  section: 'C1',
  sentence: `${code} is ${status}, ${retryable ? '' : 'not '}retryable, ${terminal ? '' : 'not '}terminal`,
  ...(pending ? { pending } : {}),
}))

export const rules: Rule[] = [
  ...from('C1 order of checks', [
    ['C1.1', 'of two broken checks the earlier one is answered, for each pair of them'],
    ['C1.2', 'an origin that the grant’s installation does not allow is refused, though another one allows it'],
    ['C1.3', 'origins match by scheme, host and port, or by a wildcard for one or more labels'],
    ['C1.4', 'unknown fields and unknown query parameters are rejected, never dropped'],
    ['C1.5', 'every name of a credential is refused in a URL'],
    ['C1.6', 'an idempotency key has 1 to 128 characters of A-Z a-z 0-9 . _ : -'],
  ]),
  ...from('C1 common rules', [
    ['C1.10', 'every answer carries X-Correlation-Id; a good one of the request is kept, a bad one replaced'],
    ['C1.11', 'answers of scoped routes carry Cache-Control: no-store, failures too'],
    ['C1.12', 'a preflight of an allowed origin names headers, methods and a max age of 7200, and allows no cookies'],
    ['C1.13', 'an origin that nobody allows gets no CORS header at all'],
    ['C1.14', 'an allowed origin gets CORS headers on every failure, with the three exposed headers'],
    ['C1.15', 'a 401 carries WWW-Authenticate: Bearer'],
    ['C1.16', 'the body of a failure is the envelope and nothing else'],
    ['C1.17', 'ValidationFailed names pointer and rule of each issue, never a value'],
    ['C1.18', 'broken JSON, an overlong header and a bad URL escape get the envelope'],
    ['C1.19', 'a body over its bound is answered, not reset'],
    ['C1.20', 'Retry-After of a 429 equals retryAfter'],
  ]),
  ...from('C1 idempotency', [
    ['C1.30', 'a repeat with the same input gets the same answer and Idempotency-Replayed'],
    ['C1.31', 'the input is compared as canonical JSON: the order of fields is no difference'],
    ['C1.32', 'the same key with other input is a conflict, and the first result stands'],
    ['C1.33', 'a key belongs to its session and its route'],
    ['C1.34', 'before there is a session a key belongs to site key and origin'],
    ['C1.35', 'a repeat is answered from another process'],
    ['C1.36', 'a repeat is answered after a restart'],
    ['C1.37', 'a session creation is repeated for a bounded time only, then it is a new one'],
    ['C1.38', 'repeats at once are one operation'],
    ['C1.39', 'on POST /messages the key equals clientOperationId'],
  ]),
  ...from('C1 rate limits', [
    ['C1.50', 'a session sends 10 at once, then 30 a minute'],
    ['C1.51', 'config and session creation share 60 a minute for each address'],
    ['C1.52', 'other calls are limited to 120 a minute for each session, apart from its sends'],
    ['C1.53', 'a seventh stream of a session closes the oldest'],
  ]),
  ...from('C2 grant and renewal', [
    ['C2.1', 'the grant is a JWS with the named header, claims and lifetime'],
    ['C2.2', 'renewAfter is at two thirds of the grant’s life'],
    ['C2.3', 'a renewal rotates the token; the one before stays good, and leads to the same token'],
    ['C2.4', 'an older renewal token is GrantInvalid'],
    ['C2.5', 'a session that was renewed in time outlives its first grant, and no session its longest life'],
    ['C2.6', 'a grant with a changed byte, of another algorithm or another audience is GrantInvalid'],
    ['C2.7', 'session content has exactly the fields of the contract'],
    ['C2.8', 'a renewal says reset_required for a position that cannot be resumed from, and ready for one that can'],
    ['C2.9', 'no token or grant is stored'],
    ['C2.10', 'two sessions of one verified subject share its open conversation', 'identity'],
  ]),
  ...from('C3 routes', [
    ['C3.1', 'config has the fields of the contract, may be cached for 60 s, and has an ETag'],
    ['C3.2', 'POST /sessions answers 201'],
    ['C3.3', 'renewal with another session’s id is GrantInvalid'],
    ['C3.4', 'POST /messages answers 202 with the seven fields, state queued'],
    [
      'C3.5',
      'a message body has 1 to 4,000 characters, not only white space, no control characters, no lone surrogates',
    ],
    ['C3.6', 'the history has 50 a page, 1 to 100 by limit, oldest first'],
    ['C3.7', 'beforeSequence gives the page just before it; with afterSequence it is ValidationFailed'],
    ['C3.8', 'a message of the history has the fields of the contract, the visitor’s own marks only on their own'],
    ['C3.9', 'POST answer, history and event speak of one message, with one sequence that never changes'],
    ['C3.10', 'closing the panel is recorded and nothing more'],
    ['C3.11', 'closing the continuity ends the session'],
    ['C3.12', 'routes of no installation’s capabilities answer 404'],
    ['C3.13', 'sequences grow, for each of several writers at once'],
    ['C3.14', 'an accepted message survives a killed core'],
    ['C3.20', 'page context is minimised: no query, no fragment, the referrer’s origin', 'page context'],
    ['C3.21', 'typing ends by itself after 8 s', 'typing'],
    ['C3.22', 'identify, clear and change of subject follow the contract', 'identity'],
    ['C3.23', 'command states go their ways and no other', 'commands'],
    ['C3.24', 'forms take the installation’s fields', 'forms'],
    ['C3.25', 'another identity closes the session before it', 'identity'],
  ]),
  ...from('C4 event stream', [
    ['C4.1', 'an id is <epoch>-<sequence>, the same on every stream and replay'],
    ['C4.2', 'an event has one data line with sequence, type, occurredAt and data'],
    ['C4.3', 'a stream starts after the greater of Last-Event-ID and afterSequence'],
    ['C4.4', 'with neither it starts at the present end'],
    ['C4.5', 'replay goes over into live, with no gap and no double'],
    ['C4.6', 'too far back is one replay.reset.required with window_exceeded, and the end'],
    ['C4.7', 'the future is position_unknown'],
    ['C4.8', 'another epoch, and a malformed id, is epoch_changed'],
    ['C4.9', 'a heartbeat comment tells the position'],
    ['C4.10', 'retry, with a jittered value, and a comment go out at once'],
    ['C4.11', 'the stream says no-store, no-transform and X-Accel-Buffering: no, and is not compressed'],
    ['C4.12', 'a renewal does not break a stream'],
    ['C4.13', 'a session that ends gets its terminal event, and the stream’s end'],
    ['C4.14', 'a reader that does not read is cut off, and resumes with nothing lost'],
    ['C4.15', 'a stream ends by itself at its greatest age, and is resumed'],
    ['C4.16', 'no text of anyone forges a field'],
    ['C4.17', 'a missing Accept is taken as text/event-stream'],
    ['C4.18', 'events of one session go to its own streams only', 'identity'],
    ['C4.19', 'every event is one that docs/events.md describes, in its shape'],
    ['C4.20', 'an event that is older than the window’s age is not replayed'],
    ['C4.30', 'typing is never replayed', 'typing'],
    ['C4.31', 'message.state.changed follows each change', 'states'],
  ]),
  ...from('S whole', [
    ['S1.1', 'POST answer, history and stream merge to one list under any interleaving'],
    ['S7.2', 'no answer shows a stack, a driver’s words, an address or a secret'],
    ['S9.1', 'every answer is one that the OpenAPI document describes'],
  ]),
  ...errorRules,
]
