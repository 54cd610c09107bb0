import type { ConnectRouter, ConnectRouterOptions } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { callBound } from './call-bound.ts'
import { accessGate, tokenEndInterceptor } from './caller.ts'
import { commandService } from './command.ts'
import { connectErrorOf, errorInterceptor } from './connect-errors.ts'
import { leadService } from './lead.ts'
import { messagingService } from './messaging.ts'
import { countRefusal, observeCalls } from './observed-calls.ts'
import { privacyService } from './privacy.ts'
import { sessionService } from './session.ts'
import { workspaceService } from './workspace.ts'

/** Every internal service of the core: the same for HTTP and for a transport in memory. */
export function coreRoutes(core: CoreContext): (router: ConnectRouter) => void {
  return (router) => {
    sessionService(router, core)
    messagingService(router, core)
    workspaceService(router, core)
    commandService(router, core)
    leadService(router, core)
    privacyService(router, core)
  }
}

/** Options for whatever serves the routes. Messages are not compressed: between parts it costs more than it saves. */
export function coreRouterOptions({ access, config, logger, metrics, now }: CoreContext): ConnectRouterOptions {
  const admit = accessGate(access)
  const takeOn = callBound(config.CALLS_MAX)
  return {
    async requestGate(context) {
      try {
        await admit(context)
        takeOn(context)
      } catch (error) {
        const refusal = connectErrorOf(error, { url: context.url, header: context.requestHeader }, logger)
        countRefusal(metrics, context, refusal)
        throw refusal
      }
    },
    interceptors: [observeCalls(metrics, logger), errorInterceptor(logger), tokenEndInterceptor(now)],
    readMaxBytes: 16 * 1024 * 1024,
    acceptCompression: [],
  }
}
