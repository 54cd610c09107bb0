import type { DescMethod } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { type CorePool, type Failure, OutOfReachError } from './core-pool.ts'
import { errorInfoOf } from './error-info.ts'
import { systemCodes, wasNeverSent } from './system-codes.ts'

/**
 * One transport over several cores. A failed unary call goes to the next core if it was never sent or its
 * method is idempotent, and a streaming call only if none of its input was read. A core's error with an
 * `ErrorInfo` is final. If every core was tried, the call fails with `unavailable`. `deadlineMs` is for
 * unary calls without a timeout.
 */
export function createFailoverTransport({ cores, deadlineMs }: { cores: CorePool; deadlineMs: number }): Transport {
  return {
    unary: (method, signal, timeoutMs = deadlineMs, header, input, values) =>
      cores
        .call(
          ({ transport }) => transport.unary(method, signal, timeoutMs, header, input, values),
          (reason) => classify(reason, signal, method),
        )
        .catch(asUnavailable),

    stream(method, signal, timeoutMs, header, input, values) {
      let begun = false
      async function* trackedInput() {
        begun = true
        yield* input
      }
      return cores
        .call(
          ({ transport }) => transport.stream(method, signal, timeoutMs, header, trackedInput(), values),
          (reason) => {
            const failure = classify(reason, signal)
            // The input may be the cause, so the core is not marked as failed.
            if (begun && failure !== 'answered') throw new OutOfReachError('stream interrupted', { cause: reason })
            return failure
          },
        )
        .catch(asUnavailable)
    },
  }
}

function classify(reason: unknown, signal: AbortSignal | undefined, method?: DescMethod): Failure {
  const error = ConnectError.from(reason)
  if (signal?.aborted || error.code === Code.DeadlineExceeded) return 'abandoned'
  if (!isOutOfReach(error)) return 'answered'
  const isUnknown = method?.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN
  return isUnknown && !wasNeverSent(error) ? 'lost' : 'repeatable'
}

function isOutOfReach(error: ConnectError) {
  if (errorInfoOf(error) !== undefined) return false
  if (error.code === Code.Unavailable || error.code === Code.Aborted || error.code === Code.Canceled) return true
  return error.code === Code.Internal && systemCodes(error).length > 0
}

function asUnavailable(reason: unknown): never {
  if (!(reason instanceof OutOfReachError)) throw reason
  throw new ConnectError('core unreachable', Code.Unavailable, undefined, undefined, reason.cause)
}
