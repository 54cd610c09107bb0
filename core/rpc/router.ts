import type { ConnectRouter, ConnectRouterOptions } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { callLimit } from './call-limit.ts'
import { authenticator, tokenEndInterceptor } from './caller.ts'
import { commandService } from './command.ts'
import { connectErrorOf, errorInterceptor } from './connect-errors.ts'
import { leadService } from './lead.ts'
import { messagingService } from './messaging.ts'
import { countRejection, observeCalls } from './observed-calls.ts'
import { privacyService } from './privacy.ts'
import { sessionService } from './session.ts'
import { workspaceService } from './workspace.ts'

/** All internal services of the core, for HTTP and for an in-memory transport. */
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

/** Options of servers of the routes. Compression between processes costs more than it saves. */
export function coreRouterOptions({ access, config, logger, metrics, now }: CoreContext): ConnectRouterOptions {
  const authenticate = authenticator(access)
  const limitConcurrency = callLimit(config.CALLS_MAX)
  return {
    async requestGate(context) {
      try {
        await authenticate(context)
        limitConcurrency(context)
      } catch (error) {
        const rejection = connectErrorOf(error, { url: context.url, header: context.requestHeader }, logger)
        countRejection(metrics, context, rejection)
        throw rejection
      }
    },
    interceptors: [observeCalls(metrics, logger), errorInterceptor(logger), tokenEndInterceptor(now)],
    readMaxBytes: 16 * 1024 * 1024,
    acceptCompression: [],
  }
}
