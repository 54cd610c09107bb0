import { randomUUID } from 'node:crypto'
import { type Message, toJson } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { callerOf } from './caller.ts'

/**
 * Runs an operator's write once for each idempotency key of the caller; a call without a key is an operation of its own.
 * What `run` returns is stored, so it names what was made and holds no secret: the answer is read after it, the first time
 * and each time again. Errors: those of `Idempotency.once`.
 */
export type OperatorWrites = <R>(
  context: HandlerContext,
  request: Message & { idempotencyKey?: string },
  run: (operation: string) => Promise<R>,
) => Promise<R>

export function operatorWrites({ idempotency, config }: CoreContext): OperatorWrites {
  return async (context, request, run) => {
    const { idempotencyKey: key, ...input } = request
    if (key === undefined) return run(randomUUID())
    const { subject, workspaceId = '' } = callerOf(context)
    const { result } = await idempotency.once({
      scope: [`${context.service.typeName}/${context.method.name}`, workspaceId, subject],
      key,
      input: toJson(context.method.input, input as Message),
      keptFor: config.IDEMPOTENCY_RETENTION_SECONDS,
      run,
    })
    return result
  }
}
