import { getOption } from '@bufbuild/protobuf'
import { createContextKey, type HandlerContext, type Interceptor } from '@connectrpc/connect'
import { scope } from '#proto/access/v1/access_pb.js'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { ServiceError } from '../errors.ts'
import type { Access, Caller } from './access.ts'

const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'caller' })

/**
 * Authenticates a call with the scope that the proto names for its method. Runs before the request
 * is read, so that unauthenticated bodies are neither read nor decoded.
 */
export function authenticator(access: Access): (context: HandlerContext) => Promise<void> {
  return async ({ method, requestHeader, values }) => {
    values.set(callerKey, await access.authenticate(requestHeader.get('authorization'), getOption(method, scope)))
  }
}

/** Ends a streamed response when the caller's token expires, with `Unauthenticated`. */
export function tokenEndInterceptor(now: () => number): Interceptor {
  return (next) => async (request) => {
    const caller = request.contextValues.get(callerKey)
    const response = await next(request)
    if (!response.stream || !caller || caller.expiresAt === Number.POSITIVE_INFINITY) return response
    return { ...response, message: endAt(caller.expiresAt, now, response.message) }
  }
}

/** Maximum delay of a timer, in milliseconds. */
const maxTimerMs = 2 ** 31 - 1

async function* endAt<T>(expiresAt: number, now: () => number, messages: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = messages[Symbol.asyncIterator]()
  let timer: NodeJS.Timeout | undefined
  let stopWaiting = () => {}

  function checkExpiry() {
    const left = expiresAt - now()
    if (left <= 0) stopWaiting()
    else timer = setTimeout(checkExpiry, Math.min(left, maxTimerMs)).unref()
  }

  try {
    for (;;) {
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        stopWaiting = () => reject(new ServiceError(ErrorCode.UNAUTHENTICATED))
        if (timer === undefined || expiresAt <= now()) checkExpiry()
        iterator.next().then(resolve, reject)
      })
      if (next.done) return
      yield next.value
    }
  } finally {
    clearTimeout(timer)
    // Not awaited: the generator may be suspended until the call's signal aborts it, which follows.
    void Promise.resolve(iterator.return?.()).catch(() => {})
  }
}

export function callerOf(context: HandlerContext): Caller {
  const caller = context.values.get(callerKey)
  if (!caller) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
  return caller
}

/** The workspace of a call: the one it names, if the caller may act for it, or the caller's own. */
export function workspaceOf(context: HandlerContext, named: string | undefined): string | undefined {
  const { workspaceId } = callerOf(context)
  if (workspaceId === undefined || named === undefined || named === '' || named === workspaceId)
    return named || workspaceId
  throw new ServiceError(ErrorCode.NOT_FOUND)
}

/**
 * Like `workspaceOf`, but requires one. Errors: `NotFound`; `ValidationFailed` if none is named.
 */
export function requiredWorkspace(context: HandlerContext, named: string | undefined): string {
  const workspaceId = workspaceOf(context, named)
  if (workspaceId === undefined)
    throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/workspaceId', rule: 'required' }] })
  return workspaceId
}
