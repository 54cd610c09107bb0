import { randomUUID } from 'node:crypto'
import { type DescMethod, type Message, toJson } from '@bufbuild/protobuf'
import { type ContextValues, createContextKey, type HandlerContext, type Interceptor } from '@connectrpc/connect'
import { atTick } from '../../platform/concurrency/ticks.ts'
import { type Core, perCore } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { consoleCaller } from '../operators/console-sessions.ts'
import { type Caller, createAccess } from '../workspaces/access.ts'
import { requireLiveToken, useToken } from '../workspaces/tokens.ts'
import { workspaceSessionsOf } from '../workspaces/workspace-sessions.ts'

const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'caller' })

export const accessOf = perCore((core) =>
  createAccess(core.keyring, core.now, {
    tokens: {
      requireLive: (tokenId, isRoutine) => requireLiveToken(core, tokenId, isRoutine),
      use: (grant) => useToken(core, grant),
    },
    workspaceSessions: workspaceSessionsOf(core),
    consoleCaller: (secret) => consoleCaller(core, secret),
  }),
)

/** Caches what is read from a method: each read of a descriptor's option decodes it again. */
export function perMethod<T extends {}>(read: (method: DescMethod) => T) {
  const known = new Map<DescMethod, T>()
  return (method: DescMethod) => {
    const value = known.get(method) ?? read(method)
    known.set(method, value)
    return value
  }
}

export const setCaller = (values: ContextValues, caller: Caller) => values.set(callerKey, caller)

/** The caller of a call that was authenticated before its handler began. */
export const authenticationKey = createContextKey<Promise<Caller> | undefined>(undefined)

/** Ends a stream with `Unauthenticated` when the token expires or is revoked, or the caller signs out. */
export function tokenEndInterceptor(now: () => number): Interceptor {
  return (next) => async (request) => {
    const caller = callerIn(request.contextValues)
    const response = await next(request)
    if (!response.stream || !caller) return response
    return { ...response, message: endWith(caller, now, response.message) }
  }
}

const maxTimerMs = 2 ** 31 - 1

/** With the time to the next tick, a stream ends within a second after a sign-out or revocation. */
const signOutCheckMs = 750

async function* endWith<T>(caller: Caller, now: () => number, messages: AsyncIterable<T>): AsyncGenerator<T> {
  const { expiresAt } = caller
  const iterator = messages[Symbol.asyncIterator]()
  let cancelCheck: (() => void) | undefined
  let hasEnded = false
  let stopWaiting = () => {}

  function end() {
    hasEnded = true
    stopWaiting()
  }

  function check() {
    const left = expiresAt - now()
    if (left <= 0) return end()
    cancelCheck = atTick(Math.min(left, caller.requireActive ? signOutCheckMs : maxTimerMs), check)
    // If the read fails, the state of the session is unknown. The next check reads it again.
    caller.requireActive?.(true).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'Unauthenticated') end()
    })
  }

  try {
    for (;;) {
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        stopWaiting = () => reject(new ServiceError('Unauthenticated'))
        if (!cancelCheck) check()
        else if (hasEnded || expiresAt <= now()) end()
        iterator.next().then(resolve, reject)
      })
      if (next.done) return
      yield next.value
    }
  } finally {
    cancelCheck?.()
    // Not awaited: the generator may wait until the call's signal aborts.
    void Promise.resolve(iterator.return?.()).catch(() => {})
  }
}

export const callerIn = (values: ContextValues): Caller | undefined => values.get(callerKey)

export function callerOf(context: HandlerContext): Caller {
  const caller = callerIn(context.values)
  if (!caller) throw new ServiceError('Unauthenticated')
  return caller
}

/** The only workspace that the caller may access; undefined for all. */
export const callerWorkspace = (context: HandlerContext) => callerOf(context).workspaceId

/**
 * Returns the workspace that the request names, else that of the caller's token; undefined if there is
 * none. Errors: `NotFound` if the caller may not access the named workspace.
 */
export function workspaceOf(context: HandlerContext, named: string | undefined): string | undefined {
  const { workspaceId } = callerOf(context)
  if (workspaceId === undefined || named === undefined || named === '' || named === workspaceId)
    return named || workspaceId
  throw new ServiceError('NotFound')
}

/** Like `workspaceOf`, but fails with `ValidationFailed` if neither request nor token names a workspace. */
export function requiredWorkspace(context: HandlerContext, named: string | undefined): string {
  const workspaceId = workspaceOf(context, named)
  if (workspaceId === undefined) throw invalid('/workspaceId', 'required')
  return workspaceId
}

/**
 * Runs a write once per idempotency key and caller. A call without a key always runs. The result of `run`,
 * if it has one, is stored, so it must identify the created object and contain no secret. The response is read
 * after the run, also for a repeat. Errors: those of `Idempotency.once`.
 */
export function operatorWrites({ idempotency, config }: Core) {
  return async <R>(
    context: HandlerContext,
    request: Message & { idempotencyKey?: string },
    run: (operation: string) => Promise<R>,
  ) => {
    const { idempotencyKey: key, ...input } = request
    if (key === undefined) return run(randomUUID())
    const { subject, workspaceId = '' } = callerOf(context)
    const { content } = await idempotency.once({
      scope: [`${context.service.typeName}/${context.method.name}`, workspaceId, subject],
      key,
      input: toJson(context.method.input, input as Message),
      keptFor: config.IDEMPOTENCY_RETENTION_SECONDS,
      run: async (operation) => ({ ...(await run(operation)) }),
    })
    return content
  }
}
