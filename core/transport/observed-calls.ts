import { ConnectError, type HandlerContext, type Interceptor } from '@connectrpc/connect'
import type { Logger } from 'pino'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { contextOf, inSpan, SpanKind } from '../../platform/observability/tracing.ts'
import type { CoreMetrics } from '../metrics.ts'
import { correlationIdOf } from './connect-errors.ts'

/** Counts, measures, traces and logs every call; a stream at its end, without duration and span. */
export function observeCalls({ calls, callDuration }: CoreMetrics, logger: Logger): Interceptor {
  return (next) => async (request) => {
    const [service, method] = [request.service.typeName, request.method.name]
    const count = (error?: unknown) => {
      const code = error === undefined ? 'ok' : codeOf(error)
      calls.inc({ service, method, code })
      logger.debug({ correlationId: correlationIdOf(request.header), service, method, code }, 'call')
    }
    if (request.stream) {
      const response = await next(request)
      return response.stream ? { ...response, message: counted(response.message, count) } : response
    }
    const endTimer = callDuration.startTimer({ service, method })
    const attributes = { 'rpc.system': 'connect_rpc', 'rpc.service': service, 'rpc.method': method }
    const parent = contextOf(request.header.get('traceparent'))
    try {
      const response = await inSpan(`${service}/${method}`, { kind: SpanKind.SERVER, attributes, parent }, () =>
        next(request),
      )
      count()
      return response
    } catch (error) {
      count(error)
      throw error
    } finally {
      endTimer()
    }
  }
}

async function* counted<T>(messages: AsyncIterable<T>, count: (error?: unknown) => void) {
  let failure: unknown
  try {
    yield* messages
  } catch (error) {
    failure = error
    throw error
  } finally {
    count(failure)
  }
}

/** Counts a call that the gate rejected. */
export function countRejection({ calls }: CoreMetrics, { service, method }: HandlerContext, error: unknown) {
  calls.inc({ service: service.typeName, method: method.name, code: codeOf(error) })
}

function codeOf(error: unknown) {
  const failure = ConnectError.from(error)
  return failure.findDetails(ErrorInfoSchema)[0]?.code ?? `connect_${failure.code}`
}
