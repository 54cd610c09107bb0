import { type CallOptions, type Code, ConnectError, createClient, type Transport } from '@connectrpc/connect'
import type { FastifyRequest } from 'fastify'
import { CommandService } from '#proto/command/v1/command_pb.js'
import { ConsoleService } from '#proto/console/v1/console_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { MessagingService } from '#proto/messaging/v1/messaging_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { createAuthorizedTransport } from '../../core-client/authorized-transport.ts'
import type { CoreNode } from '../../core-client/core-pool.ts'
import { createFailoverTransport } from '../../core-client/failover-transport.ts'
import { tokenFault } from '../../core-client/service-token.ts'
import { createSlots } from '../../platform/concurrency/slots.ts'
import { inSpan, SpanKind, traceparentOf } from '../../platform/observability/tracing.ts'
import { type Gateway, perGateway } from '../gateway.ts'

const READINESS_FRESH_MS = 1_000
const READINESS_DEADLINE_MS = 2_000

/** Limits concurrent calls, so that slow cores cause 503 answers instead of memory growth. */
export const callBudgetOf = perGateway(({ config }) => createSlots({ max: config.CORE_CALLS_MAX, waitingMax: 0 }))

/**
 * Clients for the pool of cores. Calls fail over, except event streams; unary calls have a deadline. The
 * budget limits concurrent calls, except sends (see the batcher), event streams and readiness checks.
 */
export const coreOf = perGateway((gateway) => {
  const { cores, config, clock, logger } = gateway
  const budget = callBudgetOf(gateway)
  const failover = traced(
    createAuthorizedTransport(
      createFailoverTransport({ cores, deadlineMs: config.CORE_DEADLINE_MS }),
      config.CORE_TOKEN,
    ),
  )
  const bounded: Transport = {
    unary: (...call) => budget.run(() => failover.unary(...call)),
    stream: (...call) => budget.run(() => failover.stream(...call)),
  }
  // Each call uses a free connection, so no check waits behind other calls.
  const readinessChecks = createClient(SessionService, failover)
  let reported: string | undefined
  let readiness: { at: number; answer: Promise<boolean> } | undefined

  async function checkReadiness() {
    try {
      await readinessChecks.checkOrigin({ origin: 'https://readiness.invalid' }, { timeoutMs: READINESS_DEADLINE_MS })
      return true
    } catch (error) {
      // Logs a fault of the token once, until another one follows.
      const reason = tokenFaultOf(gateway, ConnectError.from(error).code)
      if (reason !== undefined && reason !== reported) logger.warn({ reason }, 'not ready: the cores refuse the token')
      reported = reason ?? reported
      return false
    }
  }

  return {
    sessions: createClient(SessionService, bounded),
    messaging: createClient(MessagingService, bounded),
    commands: createClient(CommandService, bounded),
    leads: createClient(LeadService, bounded),
    console: createClient(ConsoleService, bounded),
    sends: createClient(MessagingService, failover),
    /** Resolves to whether any core answers, cached for one second. */
    isReady() {
      const now = clock.now()
      if (readiness === undefined || now - readiness.at >= READINESS_FRESH_MS)
        readiness = { at: now, answer: checkReadiness() }
      return readiness.answer
    },
  }
})

export const callOptions = (request: FastifyRequest): CallOptions => ({ headers: { 'x-correlation-id': request.id } })

/** The client for the event stream of one core, without failover. */
export const watcherOf = ({ config }: Gateway, { transport }: CoreNode) =>
  createClient(MessagingService, createAuthorizedTransport(transport, config.CORE_TOKEN))

/** Returns why the cores refuse the gateway's token; undefined for codes of other failures. */
export const tokenFaultOf = ({ config }: Gateway, code: Code): string | undefined =>
  tokenFault('CORE_TOKEN', config.CORE_TOKEN, 'visitors:act', code)

function traced(transport: Transport): Transport {
  return {
    unary(method, signal, timeoutMs, header, input, values) {
      const service = method.parent.typeName
      const attributes = { 'rpc.system': 'connect_rpc', 'rpc.service': service, 'rpc.method': method.name }
      return inSpan(`${service}/${method.name}`, { kind: SpanKind.CLIENT, attributes }, () => {
        const traceparent = traceparentOf()
        const headers = new Headers(header)
        if (traceparent !== undefined) headers.set('traceparent', traceparent)
        return transport.unary(method, signal, timeoutMs, headers, input, values)
      })
    },
    stream: transport.stream,
  }
}
