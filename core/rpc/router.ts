import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createRouterTransport,
  type Interceptor,
} from '@connectrpc/connect'
import { useLineFeedsIn } from '../../contract/line-ends.ts'
import { messageMaxBytes } from '../../platform/message-limit.ts'
import type { Core } from '../core.ts'
import { createCallGate } from '../transport/call-gate.ts'
import { tokenEndInterceptor } from '../transport/caller.ts'
import { errorInterceptor } from '../transport/connect-errors.ts'
import { hideDataInterceptor } from '../transport/data-scopes.ts'
import { createDispatcher, localTransport } from '../transport/dispatcher.ts'
import { observeCalls } from '../transport/observed-calls.ts'
import { commandService } from './command.ts'
import { consoleService } from './console.ts'
import { eventsService } from './events.ts'
import { hookService } from './leads/destinations.ts'
import { leadService } from './leads/lead.ts'
import { botService, messagingService } from './messaging.ts'
import { operatorService } from './operators.ts'
import { privacyService } from './privacy.ts'
import { sessionService } from './session.ts'
import { workspaceService } from './workspace.ts'

const services = [
  sessionService,
  messagingService,
  workspaceService,
  commandService,
  consoleService,
  operatorService,
  leadService,
  hookService,
  privacyService,
  eventsService,
  botService,
]

/** Calls over HTTP and in this process pass the same gate and interceptors. */
export function createCoreServices(core: Core) {
  const { logger, metrics, now } = core
  const gate = createCallGate(core)
  const interceptors = [
    observeCalls(metrics, logger),
    errorInterceptor(logger),
    lineEndsInterceptor,
    tokenEndInterceptor(now),
    hideDataInterceptor(),
  ]

  function register(router: ConnectRouter) {
    for (const add of services) add(router, core)
  }

  const find = createDispatcher(register, { gate, interceptors })
  const options: ConnectRouterOptions = {
    async requestGate(context) {
      const leave = await gate.admit(context)
      // Connect aborts the signal at the end of every call, also after success.
      context.signal.addEventListener('abort', leave, { once: true })
    },
    interceptors,
    readMaxBytes: messageMaxBytes,
    // Compression between processes costs more than it saves.
    acceptCompression: [],
  }
  return {
    authenticate: gate.authenticate,
    options,
    routes: register,
    /** Finds a unary method by its name: `service.lead.v1.LeadService/GetLead`. */
    find,
    transport: localTransport(find, createRouterTransport(register, { router: options })),
  }
}

/** Converts the line ends of texts, so that features see LF only. */
const lineEndsInterceptor: Interceptor = (next) => (request) => {
  if (!request.stream) useLineFeedsIn(request.message)
  return next(request)
}
