import type { DescMethod } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { type CorePool, type Failure, OutOfReachError } from './core-pool.ts'
import { errorInfoOf } from './error-info.ts'
import { systemCodes, wasNeverSent } from './system-codes.ts'

/**
 * One transport over several cores, each call on one of them. A call that a core could not take goes to the next one, if it
 * was never sent or its method is idempotent by its proto; with no core left it fails with `unavailable`. What a core itself
 * answered, an error with the public detail, is final. A call with a stream stays on its core: it goes to the next one only
 * while nothing of the stream has been taken.
 *
 * @param deadlineMs for each call that names none
 */
export function createFailoverTransport({ cores, deadlineMs }: { cores: CorePool; deadlineMs: number }): Transport {
  return {
    unary: (method, signal, timeoutMs = deadlineMs, header, input, values) =>
      cores
        .call(
          ({ transport }) => transport.unary(method, signal, timeoutMs, header, input, values),
          (reason) => judge(reason, signal, method),
        )
        .catch(asUnavailable),

    stream(method, signal, timeoutMs = deadlineMs, header, input, values) {
      let begun = false
      async function* watched() {
        begun = true
        yield* input
      }
      return cores
        .call(
          ({ transport }) => transport.stream(method, signal, timeoutMs, header, watched(), values),
          (reason) => {
            const failure = judge(reason, signal)
            // Once it has begun it may as well be the sender who broke off: no reason to leave the core aside.
            if (begun && failure !== 'answered') throw new OutOfReachError('stream broken off', { cause: reason })
            return failure
          },
        )
        .catch(asUnavailable)
    },
  }
}

function judge(reason: unknown, signal: AbortSignal | undefined, method?: DescMethod): Failure {
  const error = ConnectError.from(reason)
  if (signal?.aborted || error.code === Code.DeadlineExceeded) return 'abandoned'
  if (!isOutOfReach(error)) return 'answered'
  const isUnknown = method?.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN
  return isUnknown && !wasNeverSent(error) ? 'lost' : 'repeatable'
}

function isOutOfReach(error: ConnectError): boolean {
  if (errorInfoOf(error) !== undefined) return false
  if (error.code === Code.Unavailable || error.code === Code.Aborted || error.code === Code.Canceled) return true
  return error.code === Code.Internal && systemCodes(error).length > 0
}

function asUnavailable(reason: unknown): never {
  if (!(reason instanceof OutOfReachError)) throw reason
  throw new ConnectError('core out of reach', Code.Unavailable, undefined, undefined, reason.cause)
}
