import { type AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { NameError } from '../platform/addresses/name-service.ts'
import { DestinationBlockedError } from '../platform/addresses/resolve.ts'

/** Phase and reason of an attempt that ended without a complete response. */
export interface Failure {
  phase: AttemptPhase
  reason: FailureReason
}

/** Thrown if the destination sent an invalid HTTP response. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

const reasons: Record<string, FailureReason> = {
  ECONNREFUSED: FailureReason.CONNECTION_REFUSED,
  EHOSTUNREACH: FailureReason.UNREACHABLE,
  EHOSTDOWN: FailureReason.UNREACHABLE,
  ENETUNREACH: FailureReason.UNREACHABLE,
  ENETDOWN: FailureReason.UNREACHABLE,
  EADDRNOTAVAIL: FailureReason.UNREACHABLE,
  // The kernel gave up connecting before the deadline of the attempt.
  ETIMEDOUT: FailureReason.UNREACHABLE,
  // A firewall on this machine blocked the connection.
  EACCES: FailureReason.UNREACHABLE,
  EPERM: FailureReason.UNREACHABLE,
  ECONNRESET: FailureReason.CONNECTION_RESET,
  ECONNABORTED: FailureReason.CONNECTION_RESET,
  EPIPE: FailureReason.CONNECTION_RESET,
  UND_ERR_SOCKET: FailureReason.CONNECTION_RESET,
  // The connection was closed before the request was sent.
  UND_ERR_DESTROYED: FailureReason.CONNECTION_RESET,
  UND_ERR_CLOSED: FailureReason.CONNECTION_RESET,
  UND_ERR_HEADERS_OVERFLOW: FailureReason.PROTOCOL_ERROR,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: FailureReason.PROTOCOL_ERROR,
  EPROTO: FailureReason.TLS_FAILED,
}

/** Node's codes for invalid certificates (node:tls, "X509 certificate error codes"). */
const certificateCodes =
  /^(CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_CERT_|DEPTH_ZERO_|ERROR_IN_C|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$|ERR_TLS_CERT_)/

/**
 * Classifies the error of an attempt.
 *
 * @param timedOut true if the deadline of the attempt has passed
 */
export function classifyFailure(error: unknown, phase: AttemptPhase, timedOut: boolean): Failure {
  return { phase, reason: timedOut ? FailureReason.TIMEOUT : reasonOf(error) }
}

function reasonOf(error: unknown): FailureReason {
  if (error instanceof DestinationBlockedError) return FailureReason.DESTINATION_BLOCKED
  if (error instanceof ProtocolError) return FailureReason.PROTOCOL_ERROR
  if (error instanceof NameError) {
    return error.reason === 'not_found' ? FailureReason.NAME_NOT_FOUND : FailureReason.NAME_SERVICE_FAILED
  }
  const code = codeOf(error)
  // undici reports an unexpected status 100 or 101 with the code of a broken connection.
  if (code === 'UND_ERR_SOCKET' && /^bad (response|upgrade)$/.test((error as Error).message)) {
    return FailureReason.PROTOCOL_ERROR
  }
  if (error instanceof Error && error.name === 'HTTPParserError') return FailureReason.PROTOCOL_ERROR
  if (certificateCodes.test(code)) return FailureReason.CERTIFICATE_INVALID
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return FailureReason.TLS_FAILED
  return reasons[code] ?? FailureReason.NETWORK_ERROR
}

/** Returns true if the connection was lost and the error has no more specific reason. */
export function isConnectionLost(error: unknown): boolean {
  return reasonOf(error) === FailureReason.CONNECTION_RESET
}

function codeOf(error: unknown): string {
  // If several addresses failed, the reason of the first one counts.
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error && 'code' in first ? String(first.code) : ''
}
