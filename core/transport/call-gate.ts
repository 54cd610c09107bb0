import { type DescMethod, getOption } from '@bufbuild/protobuf'
import { Code, ConnectError, type HandlerContext } from '@connectrpc/connect'
import { admission, Places, scope } from '#proto/access/v1/access_pb.js'
import { createSlots, NoSlotError, type Slot } from '../../platform/concurrency/slots.ts'
import type { Core } from '../core.ts'
import { ServiceError, unavailable } from '../errors.ts'
import { type Caller, TokenRefusal } from '../workspaces/access.ts'
import { accessOf, authenticationKey, perMethod, setCaller } from './caller.ts'
import { connectErrorOf } from './connect-errors.ts'
import { countRejection } from './observed-calls.ts'

export type CallGate = ReturnType<typeof createCallGate>

/** Open streams of the event feed per token. */
const followersMax = 32
const refusalLogEveryMs = 10_000

/**
 * Decides by token, scope and number of running calls whether a call may run, before its request is
 * decoded. Above `CALLS_MAX`, it rejects unary calls, which limits the queue when the database is slow.
 * Streams other than exports do not count. Reads wait for reads of their kind, so that sends never wait
 * behind them.
 */
export function createCallGate(core: Core) {
  const { config, logger, metrics, now, reads } = core
  const loggedAt = new Map<TokenRefusal['kind'], number>()
  const placesOf = perMethod((method) => getOption(method, admission).places)

  const access = accessOf(core)
  const neededScope = perMethod((method) => getOption(method, scope))
  /** Checks the token of a call, and the scope that the proto declares. Errors: those of `Access.authenticate`. */
  const authenticate = (method: DescMethod, authorization: string | null) =>
    access.authenticate(authorization, neededScope(method))
  const waitingMax = config.CALLS_MAX
  /** Places of calls that may wait. Hundreds of short reads at once would delay sends. */
  const queues = {
    [Places.VISITOR_READS]: createSlots({ max: 8, waitingMax }),
    [Places.SHORT_READS]: createSlots({ max: 8, waitingMax }),
    [Places.LONG_READS]: reads,
    [Places.EXPORTS]: createSlots({ max: 4, waitingMax }),
  }
  const followers = createSlots({ max: Number.POSITIVE_INFINITY, waitingMax: 0 })
  const otherCalls = createSlots({ max: config.CALLS_MAX, waitingMax: 0 })

  /** Returns undefined for most streams. Reads the signal only of calls that may wait: reading creates it. */
  function slotFor(context: HandlerContext, { tokenId }: Caller): Promise<Slot> | undefined {
    const kind = placesOf(context.method)
    if (kind === Places.NONE) return undefined
    if (kind === Places.FEEDS) return followers.enter([{ key: tokenId, max: followersMax, waitingMax: 0 }])
    return kind in queues ? queues[kind as keyof typeof queues].enter([], context.signal) : otherCalls.enter()
  }

  async function enter(context: HandlerContext, caller: Caller): Promise<() => void> {
    try {
      return (await slotFor(context, caller))?.leave ?? (() => {})
    } catch (error) {
      if (error instanceof NoSlotError && error.isGroupFull)
        throw new ServiceError('RateLimited', { retryAfter: 1, cause: error })
      if (error instanceof NoSlotError) throw unavailable(error)
      throw error instanceof ConnectError ? error : new ConnectError('the call was cancelled', Code.Canceled)
    }
  }

  function logRefusal(error: unknown, procedure: string): void {
    const cause = error instanceof ServiceError ? error.cause : undefined
    if (!(cause instanceof TokenRefusal)) return
    if (now() - (loggedAt.get(cause.kind) ?? Number.NEGATIVE_INFINITY) < refusalLogEveryMs) return
    loggedAt.set(cause.kind, now())
    logger.warn({ procedure, reason: `the token of ${cause.message}` }, 'refused a call')
  }

  return {
    authenticate,

    /** Returns a function to call when the call has ended. Rejects with a `ConnectError`. */
    async admit(context: HandlerContext) {
      const { method, requestHeader, values } = context
      try {
        const caller = await (values.get(authenticationKey) ?? authenticate(method, requestHeader.get('authorization')))
        setCaller(values, caller)
        return await enter(context, caller)
      } catch (error) {
        logRefusal(error, `${context.service.typeName}/${context.method.name}`)
        const rejection = connectErrorOf(error, context.url, requestHeader, logger)
        countRejection(metrics, context, rejection)
        throw rejection
      }
    },
  }
}
