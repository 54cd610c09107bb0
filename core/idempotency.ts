import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from './errors.ts'
import { isIdempotencyKey } from './rules.ts'
import type { IdempotencyStore } from './store/idempotency.ts'

export interface Operation<R> {
  /** Route and owner of the key: the same key elsewhere is another operation. */
  scope: string[]
  key: string
  /** Who asks, where there is a session already: with its visitor, what is kept of the operation is erased. */
  sessionId?: string
  /** What is compared: the input as it was sent. */
  input: unknown
  /** How long a repeat gets the first answer, in seconds. */
  keptFor: number
  /**
   * Does it. What it returns is stored, so it holds no credential. `operation` names it, key and input: it is the same
   * when it runs again after its process died.
   */
  run: (operation: string) => Promise<R>
}

export interface Idempotency {
  /**
   * Runs an operation once, whichever process its repeats reach (contract, section 1).
   * Errors: `IdempotencyKeyInvalid`, `IdempotencyConflict` for other input, `OperationInProgress` while the first still runs.
   */
  once<R>(operation: Operation<R>): Promise<{ result: R; replayed: boolean }>
}

/** A process that has not finished after this long is taken to be dead, in milliseconds. */
const runningFor = 15_000

export function createIdempotency(store: IdempotencyStore, now: () => number): Idempotency {
  return {
    async once({ scope, key, sessionId, input, keptFor, run }) {
      if (!isIdempotencyKey(key)) throw new ServiceError(ErrorCode.IDEMPOTENCY_KEY_INVALID)
      const id = createHash('sha256')
        .update(JSON.stringify([...scope, key]))
        .digest('base64url')
      const inputHash = hashInput(input)
      const time = now()
      const times = { runningUntil: new Date(time + runningFor), expiresAt: new Date(time + keptFor * 1000) }
      const owner = sessionId === undefined ? {} : { sessionIds: [sessionId] }
      const earlier = await store.claim(id, { inputHash, ...owner, ...times }, new Date(time))
      if (earlier) {
        if (earlier.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
        if (earlier.result === undefined) throw new ServiceError(ErrorCode.OPERATION_IN_PROGRESS, { retryAfter: 1 })
        return { result: earlier.result as Awaited<ReturnType<typeof run>>, replayed: true }
      }
      try {
        const result = await run(`${id}.${inputHash}`)
        await store.finish(id, result, sessionIdIn(result))
        return { result, replayed: false }
      } catch (error) {
        await store.release(id).catch(() => {})
        throw error
      }
    },
  }
}

function sessionIdIn(result: unknown): string | undefined {
  const { sessionId } = Object(result) as { sessionId?: unknown }
  return typeof sessionId === 'string' ? sessionId : undefined
}

/** SHA-256 of the canonical JSON (RFC 8785). */
export function hashInput(input: unknown): string {
  return createHash('sha256')
    .update(canonicalize(input) ?? '')
    .digest('base64url')
}
