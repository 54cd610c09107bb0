import type { ConnectRouter, ConnectRouterOptions } from '@connectrpc/connect'
import type { CoreContext } from '../context.ts'
import { accessInterceptor } from './caller.ts'
import { commandService } from './command.ts'
import { errorInterceptor } from './connect-errors.ts'
import { leadService } from './lead.ts'
import { messagingService } from './messaging.ts'
import { observeCalls } from './observed-calls.ts'
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
export function coreRouterOptions({ access, logger, metrics, now }: CoreContext): ConnectRouterOptions {
  return {
    interceptors: [observeCalls(metrics, logger), errorInterceptor(logger), accessInterceptor(access, now)],
    readMaxBytes: 16 * 1024 * 1024,
    acceptCompression: [],
  }
}
