import { create } from '@bufbuild/protobuf'
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect'
import type { Logger } from 'pino'
import { type ErrorInfo, ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { validCorrelationId } from '../../contract/correlation-id.ts'
import { connectCodeOf, publicError } from '../../contract/errors.ts'
import { stackFrames } from '../../platform/observability/stack-frames.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { isStoreFault } from '../mongodb/faults.ts'

export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  return isStoreFault(error) ? unavailable(error) : new ServiceError('InternalError', { cause: error })
}

/** Converts any error to its public form. */
export function toErrorInfo(error: unknown): ErrorInfo {
  const { code, retryAfter, issues } = toServiceError(error)
  const { retryable, terminal, code: name } = publicError(code)
  return create(ErrorInfoSchema, { code: name, retryable, terminal, retryAfter, issues })
}

/** Converts any failure to a Connect error with an ErrorInfo detail. Logs internal failures. */
export function connectErrorOf(error: unknown, url: string, header: Headers, logger: Logger): ConnectError {
  // Connect itself creates errors for aborted calls and undecodable messages.
  if (error instanceof ConnectError) return error
  if (isCallerGone(error)) return new ConnectError('the caller closed the connection', Code.Canceled)
  const failure = toServiceError(error)
  if (failure.code === 'InternalError' || failure.code === 'ServiceUnavailable') {
    const correlationId = correlationIdOf(header)
    logger.error({ procedure: url, correlationId, err: describe(failure.cause) }, 'call failed with an internal error')
  }
  return new ConnectError(failure.message, connectCodeOf(publicError(failure.code)), undefined, [
    { desc: ErrorInfoSchema, value: toErrorInfo(failure) },
  ])
}

const goneCodes = ['ERR_HTTP2_INVALID_STREAM', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_PREMATURE_CLOSE']

/**
 * Whether the caller left before a message could be read or written. Connect then aborts a call over
 * HTTP/1.1 with an AbortError.
 */
const isCallerGone = (error: unknown) => {
  const { name, code = '' } = (error ?? {}) as NodeJS.ErrnoException
  return name === 'AbortError' || goneCodes.includes(code)
}

export function errorInterceptor(logger: Logger): Interceptor {
  return (next) => async (request) => {
    const convert = (error: unknown) => connectErrorOf(error, request.url, request.header, logger)
    try {
      const response = await next(request)
      if (!response.stream) return response
      return { ...response, message: convertStream(response.message, convert) }
    } catch (error) {
      throw convert(error)
    }
  }
}

/** Returns undefined for an id that a gateway would not accept (contract, section 1). */
export function correlationIdOf(header: Headers): string | undefined {
  return validCorrelationId(header.get('x-correlation-id') ?? '')
}

async function* convertStream<T>(messages: AsyncIterable<T>, convert: (error: unknown) => ConnectError) {
  try {
    yield* messages
  } catch (error) {
    throw convert(error)
  }
}

/** Returns the parts of an error that may be logged. Its message may quote input. */
function describe(cause: unknown) {
  return cause instanceof Error ? { type: cause.name, stack: stackFrames(cause).slice(0, 5).join('\n') } : undefined
}
