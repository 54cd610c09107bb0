import { toJsonString } from '@bufbuild/protobuf'
import type { Interceptor } from '@connectrpc/connect'
import { describeFailure } from './failures.ts'

/**
 * Names of logical operations. While it is not known what became of one, its next try has the same name; once it is
 * answered, the next one has another.
 */
export interface Operations {
  /** The name of what is being done to the target, made at the first call. */
  keyFor(target: string): string
  /** It was answered, for good or bad. */
  settle(target: string): void
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
    settle: (target) => void open.delete(target),
  }
}

/** Also on a page without a secure context, where `crypto.randomUUID` is missing. */
export function newOperationId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `op_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/**
 * Gives each write that can carry an idempotency key one. A call with the same input has the same key until it is answered, so
 * pressing the button again after a lost answer repeats the write instead of doing it twice.
 */
export function keyWrites(operations: Operations): Interceptor {
  return (next) => async (request) => {
    const keyField = request.method.input.field.idempotencyKey
    if (request.stream || !keyField) return next(request)
    const target = `${request.method.name} ${toJsonString(request.method.input, request.message)}`
    Object.assign(request.message, { [keyField.localName]: operations.keyFor(target) })
    try {
      const response = await next(request)
      operations.settle(target)
      return response
    } catch (error) {
      if (!describeFailure(error).ambiguous) operations.settle(target)
      throw error
    }
  }
}
