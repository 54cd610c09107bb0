import { getOption } from '@bufbuild/protobuf'
import { createContextKey, type HandlerContext, type Interceptor } from '@connectrpc/connect'
import { scope } from '#proto/access/v1/access_pb.js'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import type { Access, Caller } from '../access.ts'
import { ServiceError } from '../errors.ts'

const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'who calls' })

/** Lets a call through when its token holds the scope that the proto names for the method. */
export function accessInterceptor(access: Access): Interceptor {
  return (next) => async (request) => {
    const caller = await access.authenticate(request.header.get('authorization'), getOption(request.method, scope))
    request.contextValues.set(callerKey, caller)
    return next(request)
  }
}

export function callerOf(context: HandlerContext): Caller {
  const caller = context.values.get(callerKey)
  if (!caller) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
  return caller
}

/** The workspace that a call is about: the one it names, if the caller may act for it, or the caller's own. */
export function workspaceOf(context: HandlerContext, named: string | undefined): string | undefined {
  const { workspaceId } = callerOf(context)
  if (workspaceId === undefined || named === undefined || named === '' || named === workspaceId)
    return named || workspaceId
  throw new ServiceError(ErrorCode.NOT_FOUND)
}

/** The same, where there must be one. Errors: `NotFound`, `ValidationFailed` where neither names one. */
export function requiredWorkspace(context: HandlerContext, named: string | undefined): string {
  const workspaceId = workspaceOf(context, named)
  if (workspaceId === undefined)
    throw new ServiceError(ErrorCode.VALIDATION_FAILED, { issues: [{ path: '/workspaceId', rule: 'required' }] })
  return workspaceId
}
