import { type Client, createClient, type Transport } from '@connectrpc/connect'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import { createFailoverTransport } from '../../core-client/failover-transport.ts'
import { createTracedTransport } from '../../core-client/traced-transport.ts'

/** The cores, as the routes see them: one. */
export interface Core {
  sessions: Client<typeof SessionService>
  messaging: Client<typeof MessagingService>
  commands: Client<typeof CommandService>
  leads: Client<typeof LeadService>
  /** The event call of each core apart, since a stream cannot change cores by itself. */
  watchers: Pick<Client<typeof MessagingService>, 'watchEvents'>[]
  /** Tells that a core was seen alive. */
  revive(index: number): void
  /** Whether a core answers; asked at most once a second. */
  isReady(): Promise<boolean>
}

const READINESS_FRESH_MS = 1_000
const READINESS_DEADLINE_MS = 2_000

/** Clients of the cores: service token on every call, a deadline on every unary one, failover between cores. */
export function createCore(options: {
  transports: Transport[]
  token: string
  deadlineMs: number
  now: () => number
}): Core {
  const authorized = options.transports.map((transport) =>
    createTracedTransport(createAuthorizedTransport(transport, options.token)),
  )
  const failover = createFailoverTransport({ transports: authorized, deadlineMs: options.deadlineMs, now: options.now })
  const sessions = createClient(SessionService, failover)
  let readiness: { at: number; answer: Promise<boolean> } | undefined

  return {
    sessions,
    messaging: createClient(MessagingService, failover),
    commands: createClient(CommandService, failover),
    leads: createClient(LeadService, failover),
    watchers: authorized.map((transport) => createClient(MessagingService, transport)),
    revive: failover.revive,
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
