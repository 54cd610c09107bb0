import type { DescMessage, DescMethodStreaming, DescMethodUnary, MessageInitShape } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError, type StreamResponse, type Transport, type UnaryResponse } from '@connectrpc/connect'
import { errorInfoOf } from './error-info.ts'

const SKIP_MIN_MS = 200
const SKIP_MAX_MS = 2_000

interface Candidate {
  transport: Transport
  failures: number
  skipUntil: number
}

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
  const candidates = options.transports.map((transport): Candidate => ({ transport, failures: 0, skipUntil: 0 }))
  let turn = 0

  function inTurn(): Candidate[] {
    const now = options.now()
    const start = turn++ % candidates.length
    return [...candidates.slice(start), ...candidates.slice(0, start)].filter(({ skipUntil }) => skipUntil <= now)
  }

  async function unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: Parameters<Transport['unary']>[3],
    input: MessageInitShape<I>,
    values?: Parameters<Transport['unary']>[5],
  ): Promise<UnaryResponse<I, O>> {
    let failure = new ConnectError('no core within reach', Code.Unavailable)
    for (const candidate of inTurn()) {
      try {
        const deadline = timeoutMs ?? options.deadlineMs
        const response = await candidate.transport.unary(method, signal, deadline, header, input, values)
        candidate.failures = 0
        return response
      } catch (reason) {
        const error = ConnectError.from(reason)
        if (signal?.aborted || !isOutOfReach(error)) throw error
        setAside(candidate, options.now())
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
    for (const candidate of inTurn()) {
      try {
        const deadline = timeoutMs ?? options.deadlineMs
        const response = await candidate.transport.stream(method, signal, deadline, header, watched(), values)
        candidate.failures = 0
        return response
      } catch (reason) {
        const error = ConnectError.from(reason)
        if (signal?.aborted || !isOutOfReach(error)) throw error
        failure = new ConnectError('core out of reach', Code.Unavailable, undefined, undefined, error)
        // Once it has begun it may as well be the sender who broke off: no reason to leave the core aside.
        if (begun) break
        setAside(candidate, options.now())
      }
    }
    throw failure
  }

  return {
    unary,
    stream,
    revive(index) {
      const candidate = candidates[index]
      if (candidate === undefined) return
      candidate.failures = 0
      candidate.skipUntil = 0
    },
  }
}

function setAside(candidate: Candidate, now: number): void {
  candidate.skipUntil = now + Math.min(SKIP_MAX_MS, SKIP_MIN_MS * 2 ** candidate.failures)
  candidate.failures = Math.min(candidate.failures + 1, 10)
}

function isOutOfReach(error: ConnectError): boolean {
  if (errorInfoOf(error) !== undefined) return false
  if (error.code === Code.Unavailable || error.code === Code.Aborted || error.code === Code.Canceled) return true
  return error.code === Code.Internal && systemCodes(error).length > 0
}

const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

function wasNeverSent(error: ConnectError): boolean {
  return systemCodes(error).some((code) => NEVER_SENT.has(code))
}

/** Node's own error codes behind a Connect error. */
function systemCodes(error: ConnectError): string[] {
  const codes: string[] = []
  let cause: unknown = error.cause
  for (let depth = 0; cause instanceof Error && depth < 5; depth++) {
    if ('code' in cause && typeof cause.code === 'string') codes.push(cause.code)
    // Node tries IPv6 and IPv4 and reports both failures as one.
    if (cause instanceof AggregateError) {
      for (const each of cause.errors) if (typeof each?.code === 'string') codes.push(each.code)
    }
    cause = cause.cause
  }
  return codes
}
