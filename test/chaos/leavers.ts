import { operatorOf } from '../support/operator.ts'
import { patienceMs, type Scene } from './scene.ts'
import { arrive, gatewayOf, pause, send } from './visitors.ts'

/** Names of messages that would hinder the end of a session if visitors and the service shared a name space. */
const names = ['session.revoked', 'session.closed', 'session.identified', 'visitor.banned', 'connection.disabled']
/** A stream ends within a second of the end of its session, and later only while a fault lasts; in milliseconds. */
const endsWithinMs = 15_000

/** One visitor after the other opens a stream, writes, and has its session revoked by an operator. */
export async function revokeAgain(scene: Scene, name: string): Promise<void> {
  const { service, recorder, random, over, closed } = scene
  const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))

  for (let count = 1; !over.aborted; count += 1) {
    const visitor = await arrive(scene, `${name}-${count}`)
    if (!visitor) return
    const stream = await visitor.openStream({ after: 0, via: gatewayOf(scene) }).catch(() => undefined)
    if (stream?.status === 200) {
      for (const operation of new Set(['session.revoked', random.pick(names)]))
        await send(scene, `${name}-${count}`, visitor, operation)
      const isRevoked = await revoke(visitor.session.sessionId)
      const isEnded = stream.ended.then(() => true)
      const streamEnded = (await Promise.race([isEnded, pause(endsWithinMs, closed)])) === true
      // A run that is broken off says nothing.
      if (isRevoked && (streamEnded || !closed.aborted))
        recorder.add({ kind: 'revoked', visitor: `${name}-${count}`, streamEnded })
    }
    stream?.close()
    await pause(random.between(300, 1_000), over)
  }

  /** Again until it is acknowledged; false when the run is over before. */
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
