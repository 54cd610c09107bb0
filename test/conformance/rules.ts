/** One rule of the public contract. */
export interface Rule {
  id: string
  /**
   * Section of the public contract. S1 is section 1 of the specification. C1 is section 1 of the
   * document that completes the specification.
   */
  section: string
  sentence: string
}

type Row = [id: string, sentence: string]

const from = (section: string, rows: Row[]): Rule[] => rows.map(([id, sentence]) => ({ id, section, sentence }))

/**
 * HTTP status, retryable and terminal of each error code. Repeated here from error.proto, so that a
 * change of the proto fails a test.
 */
export const failures: Record<string, [status: number, retryable: boolean, terminal: boolean]> = {
  ValidationFailed: [400, false, false],
  WidgetVersionUnsupported: [400, false, true],
  CredentialInUrl: [400, false, false],
  IdempotencyKeyInvalid: [400, false, false],
  IdempotencyKeyMismatch: [400, false, false],
  GrantMissing: [401, false, false],
  GrantInvalid: [401, false, true],
  GrantExpired: [401, false, false],
  SessionExpired: [401, false, true],
  SessionClosed: [401, false, true],
  IdentityAssertionInvalid: [401, false, false],
  IdentityAssertionExpired: [401, false, false],
  IdentityAssertionReplayed: [401, false, false],
  OriginNotAllowed: [403, false, true],
  OriginMismatch: [403, false, true],
  SessionRevoked: [403, false, true],
  VisitorBanned: [403, false, true],
  ConnectionDisabled: [403, false, true],
  ConsentRequired: [403, false, false],
  VisitorSuppressed: [403, false, false],
  InstallationNotFound: [404, false, true],
  CommandNotFound: [404, false, false],
  RouteNotAdvertised: [404, false, false],
  NotFound: [404, false, false],
  MethodNotAllowed: [405, false, false],
  IdempotencyConflict: [409, false, false],
  CommandAlreadyResolved: [409, false, false],
  OperationInProgress: [409, true, false],
  CommandExpired: [410, false, false],
  PayloadTooLarge: [413, false, false],
  UnsupportedMediaType: [415, false, false],
  RateLimited: [429, true, false],
  InternalError: [500, true, false],
  ServiceUnavailable: [503, true, false],
}

const errorRules: Rule[] = Object.entries(failures).map(([code, [status, retryable, terminal]]) => ({
  id: `E.${code}`,
  section: 'C1',
  sentence: `${code} is ${status}, ${retryable ? '' : 'not '}retryable, ${terminal ? '' : 'not '}terminal`,
}))

export const rules: Rule[] = [
  ...from('C1 order of checks', [
    ['C1.1', 'if a request fails two checks, the response has the error of the earlier check'],
    ['C1.2', 'an origin is rejected if only another installation allows it'],
    ['C1.3', 'origins match by scheme, host and port; a wildcard matches one or more labels'],
    ['C1.4', 'unknown fields and unknown query parameters are rejected, not ignored'],
    ['C1.5', 'a URL with a credential in its query is rejected'],
    ['C1.6', 'an idempotency key has 1 to 128 characters of A-Z a-z 0-9 . _ : -'],
  ]),
  ...from('C1 common rules', [
    ['C1.10', 'every answer has X-Correlation-Id: the request’s own if it is valid, otherwise a new one'],
    ['C1.11', 'answers of scoped routes have Cache-Control: no-store, also on failure'],
    [
      'C1.12',
      'the answer to a preflight from an allowed origin lists headers and methods, has max age 7200 and allows no credentials',
    ],
    ['C1.13', 'an origin that no installation allows gets no CORS headers'],
    ['C1.14', 'an allowed origin gets CORS headers on every failure, including the three exposed headers'],
    ['C1.15', 'a 401 has WWW-Authenticate: Bearer'],
    ['C1.16', 'the body of a failure is the error envelope, without other fields'],
    ['C1.17', 'ValidationFailed lists the pointer and rule of each issue, never a value'],
    ['C1.18', 'malformed JSON, an oversized header and a bad URL escape get the error envelope'],
    ['C1.19', 'a body over its limit gets an answer, not a connection reset'],
    ['C1.20', 'Retry-After of a 429 equals retryAfter'],
    ['C1.21', 'a request that the HTTP parser rejects gets the error envelope without CORS headers'],
    ['C1.22', 'a POST without a body is ValidationFailed for every content type'],
    ['C1.23', 'a path with dot segments, double slashes or a trailing slash is NotFound'],
    [
      'C1.24',
      'if a change of the installation makes a visitor’s requests fail, the visitor’s streams end within a second',
    ],
  ]),
  ...from('C1 idempotency', [
    ['C1.30', 'a repeat with the same input gets the same answer, with Idempotency-Replayed'],
    ['C1.31', 'inputs are compared as canonical JSON; field order does not matter'],
    ['C1.32', 'the same key with different input is a conflict; the first result is kept'],
    ['C1.33', 'a key is scoped to its session and route'],
    ['C1.34', 'before a session exists, a key is scoped to site key and origin'],
    ['C1.35', 'a repeat through another gateway gets the same answer'],
    ['C1.36', 'a repeat after a restart gets the same answer'],
    ['C1.37', 'a session creation is deduplicated for a limited time; afterwards the key creates a new session'],
    ['C1.38', 'concurrent repeats run the operation once'],
    ['C1.39', 'on POST /messages the key must equal clientOperationId'],
  ]),
  ...from('C1 rate limits', [
    ['C1.50', 'a session may send 10 messages in a burst, then 30 a minute'],
    [
      'C1.51',
      'an address may request 240 configurations and 60 new sessions a minute; both limits are counted separately',
    ],
    ['C1.52', 'a session may make 120 other calls a minute; sends have their own limit'],
    ['C1.53', 'when a session opens a seventh stream, its oldest stream is closed'],
    [
      'C1.54',
      'an address is limited to 120 rejected requests a minute; its requests with an accepted grant still pass',
    ],
  ]),
  ...from('C1 connections', [
    ['C1.60', 'pipelined requests are answered in order'],
    ['C1.61', 'a pipelined GET /events waits for earlier answers and is rejected if another request follows it'],
    ['C1.62', 'a connection that the gateway ended is destroyed within 5 s'],
  ]),
  ...from('C2 grant and renewal', [
    ['C2.1', 'the grant is a JWS with the specified header, claims and lifetime'],
    ['C2.2', 'renewAfter is at two thirds of the grant’s lifetime, renewableUntil 2 hours after its end'],
    ['C2.3', 'a renewal rotates the token; the previous token still works and returns the same new token'],
    ['C2.4', 'a renewal token older than the previous one is GrantInvalid'],
    ['C2.5', 'a renewed session outlives its first grant, but not its maximum lifetime'],
    ['C2.11', 'an expired grant is GrantExpired on every scoped route but /sessions/renew'],
    ['C2.12', 'a session can be renewed with its expired grant until renewableUntil, from each tab that slept'],
    ['C2.13', 'a session that was not renewed by renewableUntil is SessionExpired, on /sessions/renew too'],
    ['C2.14', 'when the latest grant of a session expires, its streams end without an event'],
    ['C2.6', 'a grant with a changed byte, algorithm or audience is GrantInvalid'],
    ['C2.7', 'a session response has exactly the fields of the contract'],
    ['C2.8', 'a renewal returns ready if the stream can be resumed at the position, otherwise reset_required'],
    ['C2.9', 'no renewal token or grant signature is stored'],
    ['C2.10', 'two sessions of a verified subject share its open conversation'],
  ]),
  ...from('C3 routes', [
    ['C3.1', 'config has the fields of the contract, an ETag, and may be cached for 60 s'],
    ['C3.2', 'POST /sessions answers 201'],
    ['C3.3', 'a renewal for another session is GrantInvalid'],
    ['C3.4', 'POST /messages answers 202 with seven fields and state queued'],
    ['C3.5', 'a message body has 1 to 4,000 code points, no control characters, no lone surrogates, and is not blank'],
    ['C3.15', 'CRLF and CR in visitor and agent messages become LF before inputs are compared'],
    ['C3.6', 'a history page has 50 messages, or 1 to 100 with limit, oldest first'],
    [
      'C3.7',
      'beforeSequence selects the page before that sequence; a request with both beforeSequence and afterSequence is ValidationFailed',
    ],
    ['C3.8', 'history messages have the fields of the contract; visitor-only fields appear on visitor messages only'],
    ['C3.9', 'a message has the same id and sequence in the POST response, the history and the event'],
    ['C3.10', 'closing the panel leaves the session active'],
    ['C3.11', 'a close with the scope “continuity” ends the session'],
    ['C3.12', 'a route returns 404 if no capability advertises it'],
    ['C3.13', 'sequences strictly grow with concurrent writers'],
    ['C3.14', 'an accepted message survives a core crash'],
    ['C3.16', 'history pages contain every message up to lastSequence, even during concurrent writes'],
    ['C3.20', 'page context is minimised: no query, no fragment, only the referrer’s origin'],
    ['C3.21', 'typing stops automatically after 8 s'],
    [
      'C3.22',
      'identifying the visitor keeps the conversation; clearing the identity starts a new anonymous session and conversation',
    ],
    ['C3.23', 'a command allows only the specified state transitions'],
    ['C3.24', 'forms accept exactly the installation’s fields'],
    ['C3.25', 'identifying another subject closes the previous session'],
    [
      'C3.26',
      'a first identification sends session.identified and session.closed to the anonymous session and keeps its messages',
    ],
    ['C3.27', 'repeating a command outcome returns the same response'],
    ['C3.28', 'a navigation target must be http(s) on an allowed origin'],
    ['C3.29', 'a screenshot is PNG, JPEG or WebP of at most 5 MiB, and its first bytes match its type'],
    ['C3.30', 'uploads and decisions are idempotent by key, and their bodies are validated strictly'],
    ['C3.31', 'every route rejects a page context with an unknown field, a wrong type or excessive size'],
    ['C3.38', 'invalid values in page context and locale are corrected or dropped, not rejected'],
    ['C3.32', 'an advertised retry route acts as POST /messages for the operation in its path'],
    [
      'C3.34',
      'identifying an anonymous session creates a new session; the old grant works only for repeats of that request',
    ],
    [
      'C3.35',
      'a close with the scope “continuity” can be repeated with the ended grant; the subject’s next session starts a new conversation',
    ],
    ['C3.36', 'DELETE /sessions/identify accepts no body or an empty object'],
    ['C3.37', 'disabling a connection ends its sessions for good; enabling it allows new sessions'],
    ['C3.33', 'a typing report says started or stopped, needs no idempotency key, and may be repeated'],
  ]),
  ...from('C3 policies', [
    ['C3.40', 'a capability that is turned off is refused on every gateway, and its data is not stored'],
    ['C3.41', 'while consent is required, messages and forms need a granted consent; reading and streaming do not'],
    ['C3.42', 'POST /sessions/consent records the decision with version and time, once per key, for operators too'],
    ['C3.43', 'a new policy version asks again; accepted operations stay accepted'],
    ['C3.44', 'forms and leads of a suppressed person are VisitorSuppressed; chat goes on; a removal ends it'],
    [
      'C3.45',
      'a ban with the network address refuses new sessions and renewals there, on one connection, until it is lifted',
    ],
  ]),
  ...from('C3 identity assertion', [
    ['C3.50', 'an assertion is an HS256 JWS of the specified type, signed with an active secret of the installation'],
    ['C3.51', 'each claim of an assertion is validated'],
    ['C3.52', 'an assertion is valid for at most 300 s, with 30 s of clock skew allowed'],
    ['C3.53', 'each jti is accepted once, across all sessions'],
    ['C3.54', 'ctx is visible to operators and not to the browser'],
  ]),
  ...from('C4 event stream', [
    ['C4.1', 'an event id is <epoch>-<sequence>, the same on every stream and replay'],
    ['C4.2', 'an event has one data line, with sequence, type, occurredAt and data'],
    ['C4.3', 'a stream starts after the greater of Last-Event-ID and afterSequence'],
    ['C4.4', 'without Last-Event-ID and afterSequence, a stream starts at the current end'],
    ['C4.5', 'a stream switches from replay to live without gaps or duplicates'],
    ['C4.6', 'a position before the window gets replay.reset.required with window_exceeded, and the stream ends'],
    ['C4.7', 'a position after the end of the log gets replay.reset.required with position_unknown'],
    ['C4.8', 'an event id with another epoch, or a malformed one, gets replay.reset.required with epoch_changed'],
    ['C4.9', 'a heartbeat comment has the current position'],
    ['C4.10', 'a new stream immediately sends a retry field with a random value, and a comment'],
    ['C4.11', 'a stream has the headers no-store, no-transform and X-Accel-Buffering: no, and is not compressed'],
    ['C4.12', 'a renewal does not interrupt a stream'],
    ['C4.13', 'when a session ends, its streams get the terminal event and end'],
    ['C4.14', 'a client that reads too slowly is disconnected and can resume without loss'],
    ['C4.15', 'a stream ends at its maximum age and can be resumed'],
    ['C4.16', 'message text cannot forge stream fields'],
    ['C4.17', 'a missing Accept header means text/event-stream'],
    ['C4.18', 'an event about a session is sent only to the streams of this session'],
    ['C4.19', 'every event matches its schema in the API document'],
    ['C4.20', 'events older than the maximum replay age are not replayed'],
    ['C4.30', 'typing events are never replayed'],
    ['C4.31', 'each change of a message’s state sends message.state.changed once'],
    ['C4.32', 'a command sends an event when it is requested and when it is cancelled, and expires after 120 s'],
    ['C4.33', 'an assignment, an unassignment, a closing, and a reopening by a visitor’s message each send one event'],
    ['C4.34', 'availability.changed is sent to open streams without an id or sequence, and is not replayed'],
  ]),
  ...from('S whole', [
    ['S1.1', 'POST responses, history and stream merge into one list under any interleaving of calls'],
    ['S7.2', 'no answer contains a stack trace, a driver message, an internal address or a secret'],
    ['S9.1', 'every answer matches the OpenAPI document'],
  ]),
  ...errorRules,
]
