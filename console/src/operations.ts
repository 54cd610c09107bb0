import { toJsonString } from '@bufbuild/protobuf'
import type { Interceptor } from '@connectrpc/connect'
import { describeFailure } from './failures.ts'

/**
 * Keys of logical operations. Retries of an operation with an unknown outcome reuse its key. Once an
 * operation is finished, the next one gets a new key.
 */
export interface Operations {
  /** Returns the key of the open operation on the target. Creates it on the first call. */
  keyFor(target: string): string
  /** Ends the operation because its outcome is known. */
  finish(target: string): void
}

export function createOperations(newId: () => string = newOperationId): Operations {
  const open = new Map<string, string>()
  return {
    keyFor(target) {
      const known = open.get(target)
      if (known !== undefined) return known
      const id = newId()
      open.set(target, id)
      return id
    },
    finish: (target) => void open.delete(target),
  }
}

/** Works without a secure context, where `crypto.randomUUID` is missing. */
export function newOperationId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `op_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/**
 * Adds an idempotency key to each write that accepts one. A call with the same input keeps its key until
 * its outcome is known, so a second click after a lost response does not repeat the write.
 */
export function addIdempotencyKeys(operations: Operations): Interceptor {
  return (next) => async (request) => {
    const keyField = request.method.input.field.idempotencyKey
    if (request.stream || !keyField) return next(request)
    const target = `${request.method.name} ${toJsonString(request.method.input, request.message)}`
    Object.assign(request.message, { [keyField.localName]: operations.keyFor(target) })
    try {
      const response = await next(request)
      operations.finish(target)
      return response
    } catch (error) {
      if (!describeFailure(error).ambiguous) operations.finish(target)
      throw error
    }
  }
}
