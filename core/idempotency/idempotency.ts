import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { newToken } from '../mongodb/leases.ts'
import { isIdempotencyKey } from '../rules.ts'
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.ts'

export interface Operation<R> {
  /** Route and owner of the key. A key in a different scope names a different operation. */
  scope: string[]
  key: string
  /** Session of the request, if any. When its visitor is erased, the record is removed. */
  sessionId?: string
  /** Input of the request as it was sent. The input of a repeated request must be equal. */
  input: unknown
  /** Time in seconds during which a repeated request returns the first result. */
  keptFor: number
  /**
   * Runs the operation. The result is stored, so it must not contain credentials. The operation may
   * run again after its process died, or while a slow run is still running. `operation` identifies
   * scope, key and input and is the same in each run. `startedAt` is the start of the first run. It
   * changes only when the key is used again after its record expired.
   */
  run: (operation: string, startedAt: Date) => Promise<R>
}

/** Time in milliseconds after which a run is considered dead and another may take over. */
const maxRunMs = 15_000

export function createIdempotency(store: IdempotencyStore, now: () => number) {
  return {
    /**
     * Runs an operation once, even if its repeats reach other processes (contract, section 1). If
     * another run took over, the slower run returns the stored result. Errors:
     * `IdempotencyKeyInvalid`, `IdempotencyConflict` for different input, `OperationInProgress` while
     * the first run is still running.
     */
    async once<R>({ scope, key, sessionId, input, keptFor, run }: Operation<R>) {
      if (!isIdempotencyKey(key)) throw new ServiceError(ErrorCode.IDEMPOTENCY_KEY_INVALID)
      const id = createHash('sha256')
        .update(JSON.stringify([...scope, key]))
        .digest('base64url')
      const inputHash = hashInput(input)
      const startedAt = new Date(now())
      const lease = {
        owner: newToken(),
        startedAt,
        inputHash,
        sessionIds: sessionId === undefined ? undefined : [sessionId],
        runningUntil: new Date(startedAt.getTime() + maxRunMs),
        expiresAt: new Date(startedAt.getTime() + keptFor * 1000),
      }

      function replay(earlier: IdempotencyRecord) {
        if (earlier.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
        if (earlier.result === undefined) throw new ServiceError(ErrorCode.OPERATION_IN_PROGRESS, { retryAfter: 1 })
        return { result: earlier.result as R, replayed: true }
      }

      const attempt = await store.acquire(id, lease, startedAt)
      if ('earlier' in attempt) return replay(attempt.earlier)
      const { acquired } = attempt
      try {
        const result = await run(`${id}.${inputHash}`, acquired.startedAt)
        const other = await store.finish(id, acquired, result, sessionIdIn(result))
        return other ? replay(other) : { result, replayed: false }
      } catch (error) {
        await store.release(id, acquired).catch(() => {})
        throw error
      }
    },
  }
}

export type Idempotency = ReturnType<typeof createIdempotency>

function sessionIdIn(result: unknown) {
  const { sessionId } = Object(result) as { sessionId?: unknown }
  return typeof sessionId === 'string' ? sessionId : undefined
}

/** Returns the SHA-256 of the input's canonical JSON (RFC 8785). */
export function hashInput(input: unknown): string {
  return createHash('sha256')
    .update(canonicalize(input) ?? '')
    .digest('base64url')
}

export interface Repeatable<T> {
  content: T
  replayed: boolean
}
