import { type Client, type Code, ConnectError, createClient } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import type { CoreNode, CorePool } from '../../core-client/core-pool.ts'
import { createFailoverTransport } from '../../core-client/failover-transport.ts'
import { tokenFault } from '../../core-client/service-token.ts'
import type { Slots } from '../../platform/concurrency/slots.ts'
import { createBoundedTransport } from './bounded-transport.ts'
import { createTracedTransport } from './traced-transport.ts'

/** Clients for the pool of cores. */
export interface CoreClients {
  sessions: Client<typeof SessionService>
  messaging: Client<typeof MessagingService>
  commands: Client<typeof CommandService>
  leads: Client<typeof LeadService>
  console: Client<typeof ConsoleService>
  /** Client for sends. It has no call budget, because the send batcher limits sends. */
  sends: Pick<Client<typeof MessagingService>, 'sendVisitorMessages'>
  /** The pool, for calls that must reach a specific core. */
  pool: CorePool
  /** Returns the client for the event stream of one core. Its calls do not fail over. */
  watcherOf(core: CoreNode): Pick<Client<typeof MessagingService>, 'watchEvents'>
  /** Resolves to whether any core answers. The result is cached for one second. */
  isReady(): Promise<boolean>
  /** Returns why the cores refuse the gateway's token; undefined for codes of other failures. */
  tokenFault(code: Code): string | undefined
}

const READINESS_FRESH_MS = 1_000
const READINESS_DEADLINE_MS = 2_000

/**
 * Creates the clients. Every call sends the service token. Calls fail over between cores, except
 * those of event streams. Unary calls have a deadline. The budget limits concurrent calls, except
 * sends, event streams and readiness checks.
 */
export function createCoreClients(options: {
  cores: CorePool
  token: string
  budget: Slots
  deadlineMs: number
  now: () => number
  logger?: { warn(details: object, message: string): void }
}): CoreClients {
  const { cores, token, deadlineMs, logger } = options
  const faultOf = (code: Code) => tokenFault({ setting: 'CORE_TOKEN', token, scope: 'visitors:act' }, code)
  let reported: string | undefined
  const failover = createTracedTransport(
    createAuthorizedTransport(createFailoverTransport({ cores, deadlineMs }), token),
  )
  const bounded = createBoundedTransport(failover, options.budget)
  // Each call uses a free connection, so a check does not wait behind other calls.
  const readinessChecks = createClient(SessionService, failover)

  /** Logs a fault of the token once, until another one follows. */
  function report(reason: string | undefined): void {
    if (reason !== undefined && reason !== reported) logger?.warn({ reason }, 'not ready: the cores refuse the token')
    reported = reason ?? reported
  }
  let readiness: { at: number; answer: Promise<boolean> } | undefined

  return {
    sessions: createClient(SessionService, bounded),
    messaging: createClient(MessagingService, bounded),
    commands: createClient(CommandService, bounded),
    leads: createClient(LeadService, bounded),
    console: createClient(ConsoleService, bounded),
    sends: createClient(MessagingService, failover),
    pool: cores,
    tokenFault: faultOf,
    watcherOf: ({ transport }) => createClient(MessagingService, createAuthorizedTransport(transport, token)),
    isReady() {
      const now = options.now()
      if (readiness === undefined || now - readiness.at >= READINESS_FRESH_MS) {
        const answer = readinessChecks
          .checkOrigin({ origin: 'https://readiness.invalid' }, { timeoutMs: READINESS_DEADLINE_MS })
          .then(
            () => true,
            (error: unknown) => {
              report(faultOf(ConnectError.from(error).code))
              return false
            },
          )
        readiness = { at: now, answer }
      }
      return readiness.answer
    },
  }
}
