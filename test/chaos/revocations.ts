import { operatorOf } from '../support/operator.ts'
import { patienceMs, type Scene } from './scene.ts'
import { arrive, gatewayOf, pause, send } from './visitors.ts'

/** Operation ids that could suppress a terminal event if both shared one key space. */
const terminalNames = [
  'session.revoked',
  'session.closed',
  'session.identified',
  'visitor.banned',
  'connection.disabled',
]
/** Without faults, a stream ends within a second after its session. A fault may delay it. */
const endsWithinMs = 15_000

/** Repeatedly starts a visitor with a stream, sends messages and revokes its session. */
export async function revokeSessions(scene: Scene, name: string): Promise<void> {
  const { service, recorder, random, over, closed } = scene
  const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))

  for (let count = 1; !over.aborted; count += 1) {
    const visitor = await arrive(scene, `${name}-${count}`)
    if (!visitor) return
    const stream = await visitor.openStream({ after: 0, via: gatewayOf(scene) }).catch(() => undefined)
    if (stream?.status === 200) {
      for (const operation of new Set(['session.revoked', random.pick(terminalNames)]))
        await send(scene, `${name}-${count}`, visitor, operation)
      const isRevoked = await revoke(visitor.session.sessionId)
      const isEnded = stream.ended.then(() => true)
      const streamEnded = (await Promise.race([isEnded, pause(endsWithinMs, closed)])) === true
      // An aborted run proves nothing.
      if (isRevoked && (streamEnded || !closed.aborted))
        recorder.add({ kind: 'revoked', visitor: `${name}-${count}`, streamEnded })
    }
    stream?.close()
    await pause(random.between(300, 1_000), over)
  }

  /** Retries until acknowledged; returns false if the run ends first. */
  async function revoke(sessionId: string): Promise<boolean> {
    while (!closed.aborted) {
      const operator = random.pick(operators)
      const revoked = await operator.sessions
        .revokeSession({ sessionId }, { timeoutMs: patienceMs })
        .catch(() => undefined)
      if (revoked) return true
      await pause(random.between(30, 150))
    }
    return false
  }
}
