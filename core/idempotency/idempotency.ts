import { createHash, randomUUID } from 'node:crypto'
import canonicalize from 'canonicalize'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import { isIdempotencyKey } from '../rules.ts'
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.ts'

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
   * Does it. What it returns is stored, so it holds no credential. It may run again after its process died, and while a slow
   * one still runs: `operation` names the scope, key and input and is the same in each run. `startedAt` is that of the first
   * run; it changes when the key is used again after its time.
   */
  run: (operation: string, startedAt: Date) => Promise<R>
}

export interface Idempotency {
  /**
   * Runs an operation once, whichever process its repeats reach (contract, section 1). If a run was taken for dead and
   * finishes late, it returns the answer that is stored, never one of its own.
   * Errors: `IdempotencyKeyInvalid`, `IdempotencyConflict` for other input, `OperationInProgress` while the first still runs.
   */
  once<R>(operation: Operation<R>): Promise<{ result: R; replayed: boolean }>
}

/** A process that has not finished after this long is taken to be dead, in milliseconds. */
const runningFor = 15_000

export function createIdempotency(store: IdempotencyStore, now: () => number): Idempotency {
  return {
    async once<R>({ scope, key, sessionId, input, keptFor, run }: Operation<R>) {
      if (!isIdempotencyKey(key)) throw new ServiceError(ErrorCode.IDEMPOTENCY_KEY_INVALID)
      const id = createHash('sha256')
        .update(JSON.stringify([...scope, key]))
        .digest('base64url')
      const inputHash = hashInput(input)
      const startedAt = new Date(now())
      const wanted = {
        owner: randomUUID(),
        startedAt,
        inputHash,
        ...(sessionId === undefined ? {} : { sessionIds: [sessionId] }),
        runningUntil: new Date(startedAt.getTime() + runningFor),
        expiresAt: new Date(startedAt.getTime() + keptFor * 1000),
      }

      function replay(earlier: IdempotencyRecord): { result: R; replayed: boolean } {
        if (earlier.inputHash !== inputHash) throw new ServiceError(ErrorCode.IDEMPOTENCY_CONFLICT)
        if (earlier.result === undefined) throw new ServiceError(ErrorCode.OPERATION_IN_PROGRESS, { retryAfter: 1 })
        return { result: earlier.result as R, replayed: true }
      }

      const attempt = await store.claim(id, wanted, startedAt)
      if ('earlier' in attempt) return replay(attempt.earlier)
      const { claimed } = attempt
      try {
        const result = await run(`${id}.${inputHash}`, claimed.startedAt)
        const other = await store.finish(id, claimed, result, sessionIdIn(result))
        return other ? replay(other) : { result, replayed: false }
      } catch (error) {
        await store.release(id, claimed).catch(() => {})
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
