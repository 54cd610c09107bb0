import { errorInfoOf } from '../../core-client/error-info.ts'
import { botOf, robo } from '../support/bot.ts'
import type { StreamEvent, Visitor } from '../support/visitor.ts'
import { type ClientContext, callTimeoutMs } from './client-context.ts'
import type { Answer } from './history.ts'
import { arrive, gatewayOf, pause, silenceMs } from './visitors.ts'

/**
 * Acts as a bot that writes answers part by part, each to a visitor of its own who reads it and may stop it. The
 * bot repeats each part until it is accepted, and forgets now and then how far it was. Records each answer.
 */
export async function growAnswers(context: ClientContext, name: string): Promise<void> {
  const { service, random, draining } = context
  const bots = await Promise.all(service.cores.map((core) => botOf({ dataDir: service.dataDir, cores: [core] })))

  for (let count = 1; !draining.aborted; count += 1) {
    await service.undisturbed(() => growOne(`${name}-${count}`))
    await pause(random.between(50, 300), draining)
  }

  async function growOne(operation: string) {
    const visitor = await arrive(context, operation)
    if (!visitor) return
    const { conversationId } = visitor.session
    const parts = Array.from({ length: random.between(3, 15) }, (_, index) => `${operation} says ${index} 😀 `)
    const answer: Answer = {
      operation,
      planned: parts.join(''),
      acknowledged: '',
      state: 'growing',
      lengths: [],
      stops: [],
      statesAfterStop: [],
      shown: [],
    }
    context.recorder.add({ kind: 'sent', operation, conversationId })
    const reading = readAnswer(context, visitor, answer)
    const stopsAt = random.next() < 0.5 ? random.between(1, parts.length) : -1
    let stopping: Promise<void> | undefined
    let messageId = ''

    /** Repeats the call until it is answered. Returns false if the answer has ended. */
    async function append(text: string, done = false, offset = [...answer.acknowledged].length) {
      const isStopped = answer.stops.length > 0
      while (!context.stopped.aborted) {
        const call = { conversationId, clientOperationId: operation, offset, text, done, bot: robo }
        const result = await random
          .pick(bots)
          .appendBotMessage(call, { timeoutMs: callTimeoutMs })
          .catch((error) => ({ failed: errorInfoOf(error) }))
        if (!('failed' in result)) {
          messageId = result.messageId
          answer.state = result.state
          if (isStopped) answer.statesAfterStop.push(result.state)
          if (result.state !== 'growing' && result.state !== 'completed') return false
          answer.acknowledged += text
          answer.lengths.push({ expected: [...answer.acknowledged].length, got: result.length })
          return true
        }
        if (result.failed?.retryable === false) {
          context.recorder.add({ kind: 'refused', operation, code: String(result.failed.code) })
          return false
        }
        await pause(random.between(30, 150))
      }
      return false
    }

    async function stop() {
      const headers = { 'Idempotency-Key': `stop of ${operation}`.replaceAll(' ', '-') }
      for (let left = random.between(1, 3); left > 0 && !context.stopped.aborted; ) {
        const stopped = await visitor!
          .call('POST', `/messages/${messageId}/stop`, { headers, via: gatewayOf(context) })
          .catch(() => undefined)
        if (stopped?.status === 202) {
          answer.stops.push(stopped.body)
          left -= 1
        } else await pause(random.between(30, 150))
      }
    }

    for (const [index, part] of parts.entries()) {
      // A bot that was killed asks how far it was.
      if (index > 0 && random.next() < 0.05 && !(await append('', false, 0))) break
      if (index === stopsAt) stopping = stop()
      if (!(await append(part, index === parts.length - 1))) break
      await pause(random.between(1, 60))
    }
    await stopping
    await reading
    if (context.stopped.aborted) return
    while (answer.final === undefined && !context.stopped.aborted) {
      const messages = await visitor.history({ via: gatewayOf(context) }).catch(() => [])
      answer.final = messages.find((message) => message.messageId === messageId)
    }
    context.recorder.add({ kind: 'answer', ...answer })
  }
}

/** Follows the visitor's stream until the answer has ended, and records each text that a person would have seen. */
async function readAnswer(context: ClientContext, visitor: Visitor, answer: Answer): Promise<void> {
  const { random, stopped } = context
  let position = 0
  let lastEventId: string | undefined
  let text = ''
  let hasGap = false
  let hasEnded = false

  function show(next: string) {
    text = next
    answer.shown.push(next)
  }

  function onEvent({ id, type, sequence, data }: StreamEvent) {
    if (id !== '') [position, lastEventId] = [sequence, id]
    if (data.message?.author.kind === 'bot') show(data.message.body)
    if (type === 'message.completed') hasEnded = true
    if (type !== 'message.grew' || hasEnded) return
    const points = [...text]
    if (data.offset > points.length) hasGap = true
    else show(points.slice(0, data.offset).join('') + data.text)
  }

  while (!hasEnded && !stopped.aborted) {
    const stream = await visitor
      .openStream({ after: position, lastEventId, via: gatewayOf(context), onEvent })
      .catch(() => undefined)
    const leaveAt = performance.now() + random.between(100, 2_500)
    let isOver = stream?.status !== 200
    stream?.ended.then(() => {
      isOver = true
    })
    while (!isOver && !hasEnded && !hasGap && !stopped.aborted && performance.now() < leaveAt) {
      if (performance.now() - stream!.lastReceivedAt() > silenceMs) break
      await pause(20)
    }
    stream?.close()
    await stream?.ended
    while (hasGap && !stopped.aborted) {
      const messages = await visitor.history({ via: gatewayOf(context) }).catch(() => undefined)
      hasGap = messages === undefined
      if (messages) show(messages.find(({ author }) => author.kind === 'bot').body)
    }
    await pause(random.between(10, 60))
  }
}
