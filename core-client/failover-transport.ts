import type { DescMessage, DescMethodStreaming, DescMethodUnary, MessageInitShape } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type StreamResponse, type Transport, type UnaryResponse } from '@connectrpc/connect'
import { createCandidates } from './candidates.ts'
import { errorInfoOf } from './error-info.ts'
import { systemCodes, wasNeverSent } from './system-codes.ts'

/** One transport over several cores, each call on one of them. */
export interface FailoverTransport extends Transport {
  /** Tells that the core at this place of the list was seen alive, so that it is asked again at once. */
  revive(index: number): void
}

/**
 * Spreads unary calls over the cores in turn. A call that a core could not take goes to the next one, if it was never
 * sent or its method is idempotent by its proto. A core out of reach is left aside for a short while, longer each time
 * up to two seconds; with none left a call fails at once with `unavailable`. What a core itself answered, an error with
 * the public detail, is final. A call with a stream stays on its core: it goes to the next one only while nothing of
 * the stream has been taken.
 */
export function createFailoverTransport(options: {
  transports: Transport[]
  /** For each call that names none. */
  deadlineMs: number
  now: () => number
}): FailoverTransport {
  const candidates = createCandidates(options.transports, options.now)

  async function unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: Parameters<Transport['unary']>[3],
    input: MessageInitShape<I>,
    values?: Parameters<Transport['unary']>[5],
  ): Promise<UnaryResponse<I, O>> {
    let failure = new ConnectError('no core within reach', Code.Unavailable)
    for (const candidate of candidates.inTurn()) {
      try {
        const deadline = timeoutMs ?? options.deadlineMs
        const response = await candidate.core.unary(method, signal, deadline, header, input, values)
        candidates.answered(candidate)
        return response
      } catch (reason) {
        const error = ConnectError.from(reason)
        if (signal?.aborted || !isOutOfReach(error)) throw error
        candidates.setAside(candidate)
        failure = new ConnectError('core out of reach', Code.Unavailable, undefined, undefined, error)
        if (!wasNeverSent(error) && method.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN) break
      }
    }
    throw failure
  }

  async function stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: Parameters<Transport['stream']>[3],
    input: AsyncIterable<MessageInitShape<I>>,
    values?: Parameters<Transport['stream']>[5],
  ): Promise<StreamResponse<I, O>> {
    let failure = new ConnectError('no core within reach', Code.Unavailable)
    let begun = false
    async function* watched() {
      begun = true
      yield* input
    }
    for (const candidate of candidates.inTurn()) {
      try {
        const deadline = timeoutMs ?? options.deadlineMs
        const response = await candidate.core.stream(method, signal, deadline, header, watched(), values)
        candidates.answered(candidate)
        return response
      } catch (reason) {
        const error = ConnectError.from(reason)
        if (signal?.aborted || !isOutOfReach(error)) throw error
        failure = new ConnectError('core out of reach', Code.Unavailable, undefined, undefined, error)
        // Once it has begun it may as well be the sender who broke off: no reason to leave the core aside.
        if (begun) break
        candidates.setAside(candidate)
      }
    }
    throw failure
  }

  return { unary, stream, revive: candidates.revive }
}

function isOutOfReach(error: ConnectError): boolean {
  if (errorInfoOf(error) !== undefined) return false
  if (error.code === Code.Unavailable || error.code === Code.Aborted || error.code === Code.Canceled) return true
  return error.code === Code.Internal && systemCodes(error).length > 0
}
