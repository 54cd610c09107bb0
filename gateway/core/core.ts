import { type Client, createClient } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import type { CorePool, Core as PooledCore } from '../../core-client/core-pool.ts'
import { createFailoverTransport } from '../../core-client/failover-transport.ts'
import { createTracedTransport } from '../../core-client/traced-transport.ts'
import { type CallBudget, createBoundedTransport } from './bounded-transport.ts'

/** The cores, as the routes see them: one. */
export interface Core {
  sessions: Client<typeof SessionService>
  messaging: Client<typeof MessagingService>
  commands: Client<typeof CommandService>
  leads: Client<typeof LeadService>
  /** Sends, which have a queue and a bound of their own. */
  sends: Pick<Client<typeof MessagingService>, 'sendVisitorMessages'>
  /** Each of them, for what is bound to one. */
  pool: CorePool
  /** The event call of one core, since a stream cannot change cores by itself. */
  watcherOf(core: PooledCore): Pick<Client<typeof MessagingService>, 'watchEvents'>
  /** Whether a core answers; asked at most once a second. */
  isReady(): Promise<boolean>
}

const READINESS_FRESH_MS = 1_000
const READINESS_DEADLINE_MS = 2_000

/** Clients of the cores: service token on every call, a deadline on every unary one, failover between cores, a bound on what is under way. */
export function createCore(options: {
  cores: CorePool
  token: string
  budget: CallBudget
  deadlineMs: number
  now: () => number
}): Core {
  const { cores, token, deadlineMs } = options
  const failover = createTracedTransport(
    createAuthorizedTransport(createFailoverTransport({ cores, deadlineMs }), token),
  )
  const bounded = createBoundedTransport(failover, options.budget)
  const sessions = createClient(SessionService, bounded)
  let readiness: { at: number; answer: Promise<boolean> } | undefined

  return {
    sessions,
    messaging: createClient(MessagingService, bounded),
    commands: createClient(CommandService, bounded),
    leads: createClient(LeadService, bounded),
    sends: createClient(MessagingService, failover),
    pool: cores,
    watcherOf: ({ transport }) => createClient(MessagingService, createAuthorizedTransport(transport, token)),
    isReady() {
      const now = options.now()
      if (readiness === undefined || now - readiness.at >= READINESS_FRESH_MS) {
        const answer = sessions
          .checkOrigin({ origin: 'https://readiness.invalid' }, { timeoutMs: READINESS_DEADLINE_MS })
          .then(() => true)
          .catch(() => false)
        readiness = { at: now, answer }
      }
      return readiness.answer
    },
  }
}
