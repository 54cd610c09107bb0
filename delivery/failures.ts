import { type AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { DestinationBlockedError, NameError } from '../platform/addresses/resolve.ts'

export interface Failure {
  phase: AttemptPhase
  reason: FailureReason
}

/** An error of the worker itself, which has a code of `reasons`. */
export const failed = (code: 'ECONNRESET' | 'INVALID_RESPONSE' | 'TOO_LARGE', message: string) =>
  Object.assign(new Error(message), { code })

const reasons: Record<string, FailureReason> = {
  ECONNREFUSED: FailureReason.CONNECTION_REFUSED,
  EHOSTUNREACH: FailureReason.UNREACHABLE,
  EHOSTDOWN: FailureReason.UNREACHABLE,
  ENETUNREACH: FailureReason.UNREACHABLE,
  ENETDOWN: FailureReason.UNREACHABLE,
  EADDRNOTAVAIL: FailureReason.UNREACHABLE,
  // The kernel gave up before the deadline of the attempt.
  ETIMEDOUT: FailureReason.UNREACHABLE,
  // A firewall on this machine blocked the connection.
  EACCES: FailureReason.UNREACHABLE,
  EPERM: FailureReason.UNREACHABLE,
  ECONNRESET: FailureReason.CONNECTION_RESET,
  ECONNABORTED: FailureReason.CONNECTION_RESET,
  EPIPE: FailureReason.CONNECTION_RESET,
  EPROTO: FailureReason.TLS_FAILED,
  INVALID_RESPONSE: FailureReason.PROTOCOL_ERROR,
  TOO_LARGE: FailureReason.RESPONSE_TOO_LARGE,
  // The parser's limits for a head, trailers and chunk extensions.
  HPE_HEADER_OVERFLOW: FailureReason.RESPONSE_TOO_LARGE,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: FailureReason.RESPONSE_TOO_LARGE,
}

/** Node's codes for invalid certificates (node:tls, "X509 certificate error codes"). */
const certificateCodes =
  /^(CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_CERT_|DEPTH_ZERO_|ERROR_IN_C|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$|ERR_TLS_CERT_)/

/** `timedOut` means that the deadline of the attempt has passed. */
export function classifyFailure(error: unknown, phase: AttemptPhase, timedOut: boolean): Failure {
  return { phase, reason: timedOut ? FailureReason.TIMEOUT : reasonOf(error) }
}

function reasonOf(error: unknown) {
  if (error instanceof DestinationBlockedError) return FailureReason.DESTINATION_BLOCKED
  if (error instanceof NameError) {
    return error.reason === 'not_found' ? FailureReason.NAME_NOT_FOUND : FailureReason.NAME_SERVICE_FAILED
  }
  const code = codeOf(error)
  if (certificateCodes.test(code)) return FailureReason.CERTIFICATE_INVALID
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return FailureReason.TLS_FAILED
  return reasons[code] ?? (code.startsWith('HPE_') ? FailureReason.PROTOCOL_ERROR : FailureReason.NETWORK_ERROR)
}

/** Whether the connection was lost, without a more specific reason. */
export function isConnectionLost(error: unknown) {
  return reasonOf(error) === FailureReason.CONNECTION_RESET
}

function codeOf(error: unknown) {
  // If several addresses failed, the reason of the first one counts.
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error && 'code' in first ? String(first.code) : ''
}
