import { describe, expect, it } from 'vitest'
import { AttemptPhase, FailureReason } from '#proto/lead/v1/delivery_pb.js'
import { classifyFailure, isConnectionLost } from './failures.ts'

const error = (code: string) => Object.assign(new Error('10.0.0.7 said no'), { code })

describe('classifyFailure', () => {
  it.each([
    ['ECONNREFUSED', FailureReason.CONNECTION_REFUSED],
    ['ENETUNREACH', FailureReason.UNREACHABLE],
    ['ETIMEDOUT', FailureReason.UNREACHABLE],
    ['EPIPE', FailureReason.CONNECTION_RESET],
    ['HPE_INVALID_CONSTANT', FailureReason.PROTOCOL_ERROR],
    ['HPE_HEADER_OVERFLOW', FailureReason.RESPONSE_TOO_LARGE],
    ['HPE_CHUNK_EXTENSIONS_OVERFLOW', FailureReason.RESPONSE_TOO_LARGE],
    ['CERT_HAS_EXPIRED', FailureReason.CERTIFICATE_INVALID],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', FailureReason.CERTIFICATE_INVALID],
    ['ERR_TLS_CERT_ALTNAME_INVALID', FailureReason.CERTIFICATE_INVALID],
    ['ERR_SSL_WRONG_VERSION_NUMBER', FailureReason.TLS_FAILED],
    ['EWHATEVER', FailureReason.NETWORK_ERROR],
  ])('classifyFailure maps the error code %s to a failure reason', (code, reason) => {
    const phase = AttemptPhase.HEADERS
    expect(classifyFailure(error(code), phase, false)).toEqual({ phase, reason })
    expect(classifyFailure(error(code), phase, true)).toEqual({ phase, reason: FailureReason.TIMEOUT })
  })

  it('classifyFailure returns the failure of the first address if several addresses failed', () => {
    const all = new AggregateError([error('ECONNREFUSED'), error('ENETUNREACH')])
    expect(classifyFailure(all, AttemptPhase.CONNECT, false).reason).toBe(FailureReason.CONNECTION_REFUSED)
  })

  it('isConnectionLost returns true for an idle connection that closed before the request', () => {
    expect(['ECONNRESET', 'EPIPE'].every((code) => isConnectionLost(error(code)))).toBe(true)
    expect(isConnectionLost(error('ECONNREFUSED'))).toBe(false)
  })
})
