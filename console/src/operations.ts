import { toJsonString } from '@bufbuild/protobuf'
import type { Interceptor } from '@connectrpc/connect'
import { newRandomId } from '../../browser/platform.ts'
import { describeFailure } from './failures.ts'

type Operations = ReturnType<typeof createOperations>

/** Stores the idempotency keys of operations. An operation keeps its key until its outcome is known. */
export function createOperations(newId: () => string = newOperationId) {
  const open = new Map<string, string>()
  return {
    keyFor(target: string): string {
      const known = open.get(target)
      if (known !== undefined) return known
      const id = newId()
      open.set(target, id)
      return id
    },
    /** Ends the operation. Call when its outcome is known. */
    finish: (target: string) => void open.delete(target),
  }
}

export const newOperationId = () => `op_${newRandomId()}`

/**
 * Adds an idempotency key to each write that takes one, so that a second click after a lost
 * response does not repeat it.
 */
export function addIdempotencyKeys(operations: Operations): Interceptor {
  return (next) => async (request) => {
    const { idempotencyKey, clientOperationId } = request.method.input.field
    const keyField = idempotencyKey ?? clientOperationId
    const message = request.message as Record<string, unknown>
    // Replies and notes have keys that survive a reload.
    if (request.stream || !keyField || message[keyField.localName]) return next(request)
    const target = `${request.method.name} ${toJsonString(request.method.input, request.message)}`
    message[keyField.localName] = operations.keyFor(target)
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
