import { create } from '@bufbuild/protobuf'
import { Code, ConnectError, type Interceptor } from '@connectrpc/connect'
import type { Logger } from 'pino'
import { ErrorCode, type ErrorInfo, ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { isStoreFault } from '../database/faults.ts'
import { errorContracts, ServiceError, unavailable } from '../errors.ts'

/** Any failure as a caller may see it: a public code, and nothing of what lies behind it. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error
  return isStoreFault(error) ? unavailable(error) : new ServiceError(ErrorCode.INTERNAL_ERROR, { cause: error })
}

export function toErrorInfo({ code, retryAfter, issues }: ServiceError): ErrorInfo {
  const { name, retryable, terminal } = errorContracts.get(code)!
  return create(ErrorInfoSchema, {
    code: name,
    retryable,
    terminal,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    issues,
  })
}

/** What the log says of a call that failed. */
interface FailedCall {
  url: string
  header: Headers
}

/** Any failure as a Connect error with an ErrorInfo detail. Those that are ours are logged. */
export function connectErrorOf(error: unknown, { url, header }: FailedCall, logger: Logger): ConnectError {
  // A call that the caller gave up, or a message that was no message, is Connect's own to report.
  if (error instanceof ConnectError) return error
  const failure = toServiceError(error)
  if (failure.code === ErrorCode.INTERNAL_ERROR || failure.code === ErrorCode.SERVICE_UNAVAILABLE) {
    const correlationId = correlationIdOf(header)
    logger.error({ procedure: url, correlationId, err: describe(failure.cause) }, 'call failed')
  }
  return new ConnectError(failure.message, connectCode(failure.code), undefined, [
    { desc: ErrorInfoSchema, value: toErrorInfo(failure) },
  ])
}

/** Turns every failure of a service into a Connect error. */
export function errorInterceptor(logger: Logger): Interceptor {
  return (next) => async (request) => {
    const convert = (error: unknown) => connectErrorOf(error, request, logger)
    try {
      const response = await next(request)
      if (!response.stream) return response
      return { ...response, message: convertStream(response.message, convert) }
    } catch (error) {
      throw convert(error)
    }
  }
}

/** As the caller named its work; nothing where that is not a name that a gateway would have kept (contract 1). */
export function correlationIdOf(header: Headers): string | undefined {
  const given = header.get('x-correlation-id')
  return given !== null && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : undefined
}

async function* convertStream<T>(messages: AsyncIterable<T>, convert: (error: unknown) => ConnectError) {
  try {
    yield* messages
  } catch (error) {
    throw convert(error)
  }
}

/** What a log may hold of an error: its kind and where it came from, not its text, which may quote input. */
function describe(cause: unknown) {
  return cause instanceof Error
    ? { type: cause.name, stack: cause.stack?.split('\n').slice(1, 6).join('\n') }
    : undefined
}

function connectCode(code: ErrorCode): Code {
  switch (errorContracts.get(code)?.httpStatus) {
    case 400:
    case 413:
    case 415:
      return Code.InvalidArgument
    case 401:
      return Code.Unauthenticated
    case 403:
      return Code.PermissionDenied
    case 404:
      return Code.NotFound
    case 405:
      return Code.Unimplemented
    case 409:
      return code === ErrorCode.IDEMPOTENCY_CONFLICT ? Code.AlreadyExists : Code.FailedPrecondition
    case 410:
      return Code.FailedPrecondition
    case 429:
      return Code.ResourceExhausted
    case 503:
      return Code.Unavailable
    default:
      return Code.Internal
  }
}
