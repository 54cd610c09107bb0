import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { errorInfoOf } from '../core-client/error-info.ts'

/** A write got no answer, so its outcome is unknown. */
export class UnknownOutcomeError extends Error {
  override readonly name = 'UnknownOutcomeError'
}

const tries = 3
const unanswered = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Internal, Code.Unknown])

/**
 * Adds the idempotency key to each request that has the field `idempotency_key`. Retries the request with the same
 * key if it gets no answer. Errors: `UnknownOutcomeError` if no retry gets one. Streams have no deadline.
 */
export function createKeyedTransport(
  transport: Transport,
  key: string,
  { retryMs = 1_000, deadlineMs = 30_000 } = {},
): Transport {
  return {
    async unary(method, signal, timeoutMs = deadlineMs, header, input, values) {
      const keyField = method.input.field.idempotencyKey
      if (!keyField) return transport.unary(method, signal, timeoutMs, header, input, values)
      const keyed = { ...input, [keyField.localName]: key }
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await transport.unary(method, signal, timeoutMs, header, keyed, values)
        } catch (reason) {
          const error = ConnectError.from(reason)
          if (!isUnanswered(error)) throw error
          if (attempt === tries)
            throw new UnknownOutcomeError(`${describeError(error)}; repeat the command with --key ${key}`)
          await delay(retryMs, undefined, { signal })
        }
      }
    },
    stream: transport.stream,
  }
}

const isUnanswered = (error: ConnectError) =>
  unanswered.has(error.code) || errorInfoOf(error)?.code === 'OperationInProgress'

const describeError = (error: ConnectError) => errorInfoOf(error)?.code ?? error.rawMessage
