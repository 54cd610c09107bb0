import type { SourceChange } from '../support/source-copy.ts'

/** A fault of the service that violates one rule. */
export interface SeededFault {
  name: string
  /** Id of the rule whose tests must fail. */
  rule: string
  changes: SourceChange[]
}

const fault = (rule: string, name: string, folder: string, from: string, to: string): SeededFault => {
  return { rule, name, changes: [{ folder, from, to }] }
}

/** Faults that `npm run conformance` must find, each by the tests of a different rule. */
export const seededFaults: SeededFault[] = [
  fault(
    'C1.1',
    'checks the version before the origin',
    'gateway/routes',
    'checkOrigin, requireVersion,',
    'requireVersion, checkOrigin,',
  ),
  fault(
    'C1.4',
    'ignores unknown query parameters',
    'gateway/routes',
    "else await allowKnownOrigin(reply) }) app.addHook('onRoute', refuseQuery)",
    'else await allowKnownOrigin(reply)\n  })',
  ),
  fault(
    'C1.10',
    'replaces a valid correlation id',
    'gateway/http',
    "(typeof given === 'string' && validCorrelationId(given)) || randomUUID()",
    'validCorrelationId(String(given)) ? randomUUID() : randomUUID()',
  ),
  fault(
    'C1.12',
    'allows credentials in a preflight',
    'gateway/checks',
    "reply.header('access-control-max-age', PREFLIGHT_MAX_AGE)",
    "reply.header('access-control-max-age', PREFLIGHT_MAX_AGE).header('access-control-allow-credentials', 'true')",
  ),
  fault(
    'C1.13',
    'sends CORS headers to an origin that no installation allows',
    'gateway/checks',
    'allowOrigin(reply, await requireOrigin(request)) } catch {',
    'allowOrigin(reply, await requireOrigin(request)) } catch {\n    allowOrigin(reply, request.headers.origin)',
  ),
  fault(
    'C1.14',
    'does not expose Idempotency-Replayed',
    'gateway/checks',
    "'X-Correlation-Id, Retry-After, Idempotency-Replayed'",
    "'X-Correlation-Id, Retry-After'",
  ),
  fault(
    'C1.20',
    'answers 429 without Retry-After',
    'gateway/http',
    '(httpStatus === 429 || httpStatus === 503)',
    'httpStatus === 503',
  ),
  fault(
    'C1.30',
    'stores a repeated message again',
    'core/conversations',
    'operationKeys.visitorMessage(operationSessionOf(session), clientOperationId)',
    "operationKeys.visitorMessage(operationSessionOf(session), newId('msg'))",
  ),
  fault(
    'C1.32',
    'accepts other input with the same idempotency key',
    'core/idempotency',
    "if (earlier.inputHash !== inputHash) throw new ServiceError('IdempotencyConflict')",
    '',
  ),
  fault(
    'C1.50',
    'has no limit on a burst of messages',
    'gateway/limits',
    'burst: burst * config.RATE_LIMIT_FACTOR',
    'burst: perMinute * config.RATE_LIMIT_FACTOR',
  ),
  fault(
    'C1.53',
    'opens any number of streams for one session',
    'gateway/events',
    'ofSession.length >= config.STREAMS_PER_SESSION',
    'ofSession.length >= 1000',
  ),
  fault(
    'C2.1',
    'issues grants for twice the lifetime',
    'core/sessions',
    'Math.min(issuedAt + config.GRANT_LIFETIME_SECONDS, sessionEnd)',
    'Math.min(issuedAt + 2 * config.GRANT_LIFETIME_SECONDS, sessionEnd)',
  ),
  fault(
    'C2.4',
    'accepts an old renewal token',
    'core/visitors',
    'generation > 0 && grantsOf(core).isRenewalToken(renewalToken, sessionId, generation - 1)',
    'Array.from({ length: generation }, (_, old) => old).some((old) => grantsOf(core).isRenewalToken(renewalToken, sessionId, old))',
  ),
  fault('C3.20', 'stores the query of a page', 'core/consents', "page.search = ''", ''),
  fault(
    'C3.29',
    'accepts an upload whose bytes are no JPEG',
    'core/pictures',
    "'image/jpeg': (bytes) => startsWith(bytes, [0xff, 0xd8, 0xff]),",
    "'image/jpeg': () => true,",
  ),
  fault(
    'C3.43',
    'accepts a consent for an earlier policy version',
    'core/consents',
    "return latest?.decision === 'granted' && latest.policyVersion === consent.policyVersion",
    "return latest?.decision === 'granted'",
  ),
  fault(
    'C3.45',
    'ignores a ban of an address',
    'core/bans',
    'network !== undefined && (await isBannedOf(core)(network)) === true',
    'network !== undefined && !isBannedOf',
  ),
  fault(
    'C3.53',
    'accepts an assertion twice',
    'core/identity',
    'if (!(await consumeNonce(core, { publicSiteKey, nonce, operation, expiresAt }, dateOf(core)))) {',
    'await consumeNonce(core, { publicSiteKey, nonce, operation, expiresAt }, dateOf(core))\n    if (nonce.length === 0) {',
  ),
  fault(
    'C4.3',
    'starts a stream after the lower of two positions',
    'core/streams',
    'const sequence = Math.max(...positions)',
    'const sequence = Math.min(...positions)',
  ),
  fault(
    'C4.6',
    'replays more events than the window has',
    'core/streams',
    "if (isTooMany) return reset('window_exceeded')",
    '',
  ),
  fault(
    'C4.9',
    'sends a heartbeat without the position',
    'gateway/events',
    'encodeHeartbeat(subscription.position)',
    'encodeHeartbeat(0)',
  ),
  fault('C4.11', 'allows proxies to buffer a stream', 'gateway/events', "'x-accel-buffering': 'no',", ''),
  fault(
    'C4.18',
    'sends a command to another session of the visitor',
    'core/streams',
    '(sessionId === undefined || sessionId === session.sessionId)',
    '(sessionId === undefined || session.sessionId !== undefined)',
  ),
  fault(
    'E.GrantMissing',
    'answers a missing grant with the code of an invalid one',
    'gateway/checks',
    "throw new GatewayError('GrantMissing')",
    "throw new GatewayError('GrantInvalid')",
  ),
]
