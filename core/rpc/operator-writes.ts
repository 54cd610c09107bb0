import { randomUUID } from 'node:crypto'
import { type Message, toJson } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { callerOf } from './caller.ts'

/**
 * Runs an operator's write once per idempotency key and caller; a call without a key always runs.
 * The result of `run` is stored, so it must identify what was created and contain no secret. The
 * response is read afterwards, on repeats too. Errors: those of `Idempotency.once`.
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
