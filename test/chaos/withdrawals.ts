import { operatorOf } from '../support/operator.ts'
import type { Receiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import { ownerOf } from './history.ts'
import { arrive, pause, send } from './visitors.ts'

const path = '/withdrawals'

/**
 * Repeatedly sends a message to a hook whose receiver refuses it, and withdraws the message. The
 * receiver quotes each request in its answer.
 */
export async function withdrawMessages(context: ClientContext, name: string, receiver: Receiver): Promise<void> {
  const { service, recorder, random, draining, stopped } = context
  const { demo } = service
  const operators = service.cores.map(({ url }) => operatorOf(url, demo.serviceToken))
  const options = { timeoutMs: callTimeoutMs }

  receiver.on(path, (_, response) => {
    const body = receiver.requests.pop()!.body.toString()
    const text: string = JSON.parse(body).data.body
    const visitor = ownerOf(text) ?? ''
    const isOwn = visitor.startsWith(name)
    if (isOwn) recorder.add({ kind: 'text received', visitor, at: performance.now() })
    response.writeHead(isOwn && !draining.aborted ? 503 : 200).end(body)
  })
  const { workspaceId } = demo
  const hook = { workspaceId, destinationUrl: `${receiver.http}${path}`, eventTypes: ['message.visitor'] }
  await until('the hook', () => operators[0]!.hooks.createHook(hook, options).catch(() => undefined))

  for (let count = 1; !draining.aborted; count += 1) {
    await service.undisturbed(() => withdrawOne(`${name}-${count}`))
    await pause(random.between(100, 500), draining)
  }

  async function withdrawOne(visitorName: string) {
    const visitor = await arrive(context, visitorName)
    if (!visitor) return
    const accepted = await send(context, visitorName, visitor, 'slip')
    if (!accepted) return
    // Often, the receiver has refused the message before it is withdrawn.
    await pause(random.between(0, 4_000), draining)
    const { conversationId } = visitor.session
    while (!stopped.aborted) {
      const withdrawn = await random
        .pick(operators)
        .messaging.redactMessage({ conversationId, sequence: accepted.sequence }, options)
        .catch(() => undefined)
      if (withdrawn) return recorder.add({ kind: 'withdrawn', visitor: visitorName, at: performance.now() })
      await pause(random.between(30, 150))
    }
  }
}
