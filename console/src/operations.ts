import { toJsonString } from '@bufbuild/protobuf'
import type { Interceptor } from '@connectrpc/connect'
import { newRandomId } from '../../browser/platform.ts'
import { describeFailure } from './failures.ts'

export const newOperationId = () => `op_${newRandomId()}`

/**
 * Adds an idempotency key to each write that takes one, so that a second click after a lost
 * response does not repeat it.
 */
export function addIdempotencyKeys(): Interceptor {
  /** Keys of the operations whose outcome is not known. */
  const open = new Map<string, string>()
  return (next) => async (request) => {
    const { idempotencyKey, clientOperationId } = request.method.input.field
    const keyField = idempotencyKey ?? clientOperationId
    const message = request.message as Record<string, unknown>
    // Replies and notes have keys that survive a reload.
    if (request.stream || !keyField || message[keyField.localName]) return next(request)
    const target = `${request.method.name} ${toJsonString(request.method.input, request.message)}`
    const key = open.get(target) ?? newOperationId()
    open.set(target, key)
    message[keyField.localName] = key
    try {
      const response = await next(request)
      open.delete(target)
      return response
    } catch (error) {
      if (!describeFailure(error).ambiguous) open.delete(target)
      throw error
    }
  }
}
