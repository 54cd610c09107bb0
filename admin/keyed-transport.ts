import { setTimeout as delay } from 'node:timers/promises'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { errorInfoOf } from '../core-client/error-info.ts'

/** A write whose answer did not come: nobody knows whether it was made. */
export class UnknownOutcomeError extends Error {
  override readonly name = 'UnknownOutcomeError'
}

const tries = 3
const unanswered = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Internal, Code.Unknown])

/**
 * Gives each write that can carry an idempotency key the one of the command, and repeats it with that key when its answer does
 * not come. Errors: `UnknownOutcomeError` when none has come in the end.
 */
export function createKeyedTransport(
  transport: Transport,
  { key, retryMs = 1_000 }: { key: string; retryMs?: number },
): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, values) {
      const keyField = method.input.field.idempotencyKey
      if (!keyField) return transport.unary(method, signal, timeoutMs, header, input, values)
      const keyed = { ...input, [keyField.localName]: key }
      for (let turn = 1; ; turn += 1) {
        try {
          return await transport.unary(method, signal, timeoutMs, header, keyed, values)
        } catch (reason) {
          const error = ConnectError.from(reason)
          if (!isUnanswered(error)) throw error
          if (turn === tries) throw new UnknownOutcomeError(`${told(error)}; repeat the command with --key ${key}`)
          await delay(retryMs, undefined, { signal })
        }
      }
    },
    stream: transport.stream,
  }
}

const isUnanswered = (error: ConnectError) =>
  unanswered.has(error.code) || errorInfoOf(error)?.code === 'OperationInProgress'

const told = (error: ConnectError) => errorInfoOf(error)?.code ?? error.rawMessage
