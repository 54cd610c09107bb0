import { setTimeout as delay } from 'node:timers/promises'
import { TypingState } from '#proto/messaging/v1/messaging_pb.js'
import { operatorOf } from '../support/operator.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import { textOf } from './history.ts'
import type { ChaosVisitor } from './visitors.ts'

/**
 * Acts as an agent who answers random visitors through random cores. Resolves when all sends of the
 * agent are acknowledged.
 */
export async function answerVisitors(
  context: ClientContext,
  name: string,
  visitors: () => ChaosVisitor[],
): Promise<void> {
  const { service, recorder, random, draining, stopped } = context
  const operators = service.cores.map(({ url }) => operatorOf(url, service.demo.serviceToken))
  const options = { timeoutMs: callTimeoutMs }

  for (let count = 1; !draining.aborted; count += 1) {
    await delay(random.between(10, 60))
    const present = visitors()
    if (present.length === 0) continue
    const visitor = random.pick(present)
    const chance = random.next()
    if (chance < 0.1) await suggestPage(visitor, `${name}-page-${count}`)
    else if (chance < 0.2) await type(visitor)
    else await answer(visitor, `${name}-${count}`)
  }

  async function answer({ name: visitor, conversationId }: ChaosVisitor, operation: string) {
    recorder.add({ kind: 'sent', operation, conversationId })
    const agent = { displayName: textOf(visitor, 'has this agent') }
    while (!stopped.aborted) {
      const sent = await random
        .pick(operators)
        .messaging.sendAgentMessage(
          { conversationId, clientOperationId: operation, body: textOf(visitor, `reads ${operation}`), agent },
          options,
        )
        .catch(() => undefined)
      if (sent) {
        const { messageId = '', sequence = 0 } = sent.message ?? {}
        recorder.add({ kind: 'acknowledged', operation, conversationId, messageId, sequence })
        return
      }
      await delay(random.between(30, 150))
    }
    recorder.add({ kind: 'stuck', what: `${operation} is not acknowledged` })
  }

  /** Sends a navigation request. Its events go only to the streams of the visitor's current session. */
  async function suggestPage({ name: visitor, sessionId }: ChaosVisitor, clientOperationId: string) {
    const url = `${service.demo.origin}/`
    await random
      .pick(operators)
      .commands.requestNavigation(
        { sessionId, url, label: textOf(visitor, 'should look here'), clientOperationId },
        options,
      )
      .catch(() => {})
  }

  async function type({ name: visitor, conversationId }: ChaosVisitor) {
    const state = random.pick([TypingState.STARTED, TypingState.STOPPED])
    const agent = { displayName: textOf(visitor, 'has this agent') }
    await random
      .pick(operators)
      .messaging.setTyping({ conversationId, state, agent }, options)
      .catch(() => {})
  }
}
