import { operatorOf } from '../support/operator.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import { arrive, gatewayOf, pause, send } from './visitors.ts'

/**
 * Operation ids of the visitors' messages. Each id equals the type of an event that the service
 * sends. The service must still send this event after the message.
 */
const eventTypes = ['session.revoked', 'session.closed', 'session.identified', 'visitor.banned', 'connection.disabled']
/**
 * Maximum time from the end of a session to the end of its stream. Without faults it takes a
 * second; faults may delay it.
 */
const endsWithinMs = 15_000

/** Repeatedly starts a visitor with a stream, sends messages and revokes its session. */
export async function revokeSessions(context: ClientContext, name: string): Promise<void> {
  const { service, recorder, random, draining, stopped } = context
  const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))

  for (let count = 1; !draining.aborted; count += 1) {
    await service.undisturbed(() => revokeOne(count))
    await pause(random.between(300, 1_000), draining)
  }

  async function revokeOne(count: number) {
    const visitor = await arrive(context, `${name}-${count}`)
    if (!visitor) return
    const stream = await visitor.openStream({ after: 0, via: gatewayOf(context) }).catch(() => undefined)
    if (stream?.status === 200) {
      for (const operation of new Set(['session.revoked', random.pick(eventTypes)]))
        await send(context, `${name}-${count}`, visitor, operation)
      const isRevoked = await revoke(visitor.session.sessionId)
      const isEnded = stream.ended.then(() => true)
      const streamEnded = (await Promise.race([isEnded, pause(endsWithinMs, stopped)])) === true
      // If the run was aborted, the service may have had too little time to end the stream. An open
      // stream is then not recorded.
      if (isRevoked && (streamEnded || !stopped.aborted))
        recorder.add({ kind: 'revoked', visitor: `${name}-${count}`, streamEnded })
    }
    stream?.close()
  }

  /** Revokes the session and retries until the core acknowledges it. Returns false if the run ends first. */
  async function revoke(sessionId: string): Promise<boolean> {
    while (!stopped.aborted) {
      const operator = random.pick(operators)
      const revoked = await operator.sessions
        .revokeSession({ sessionId }, { timeoutMs: callTimeoutMs })
        .catch(() => undefined)
      if (revoked) return true
      await pause(random.between(30, 150))
    }
    return false
  }
}
