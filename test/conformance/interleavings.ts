import fc from 'fast-check'
import { expect } from 'vitest'
import { until } from '../support/until.ts'
import type { EventStream, Visitor } from '../support/visitor.ts'
import { bearer } from './client.ts'
import { concurrentRule } from './rule.ts'
import type { StackWithClients } from './suite.ts'

type Step =
  | { kind: 'send'; operation: number }
  | { kind: 'agent'; operation: number }
  | { kind: 'reconnect'; back: number }
  | { kind: 'renew' }
  | { kind: 'read' }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('send' as const), operation: fc.nat({ max: 5 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('agent' as const), operation: fc.nat({ max: 5 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('reconnect' as const), back: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'renew' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'read' as const }) },
)

/** Repeats a call if a gateway closed an idle connection while the request was under way. */
const repeated = <T>(call: () => Promise<T>): Promise<T> =>
  call().catch((error) => {
    if (error instanceof TypeError) return call()
    throw error
  })

interface Known {
  messageId: string
  clientOperationId?: string
  sequence: number
  body?: string
}

/** Merges messages from responses, history and stream by their id, as a client must do. */
function createMerge() {
  const byId = new Map<string, Known>()
  return {
    add({ messageId, clientOperationId, sequence, body }: Known) {
      const known = byId.get(messageId)
      if (known) expect([known.sequence, known.clientOperationId]).toEqual([sequence, clientOperationId])
      byId.set(messageId, { messageId, clientOperationId, sequence, body: body ?? known?.body })
    },
    list: () => [...byId.values()].sort((a, b) => a.sequence - b.sequence),
  }
}

/** Tests of contract sections 1 and 3: a client gets one consistent list under any interleaving of calls. */
export function interleavingRules(
  suite: () => { roomy: StackWithClients },
  { races, runs }: { races: number; runs: number },
): void {
  concurrentRule('C3.16', async () => {
    const { client, operator, stack } = suite().roomy
    for (let race = 0; race < races; race += 1) {
      const visitor = await client.visitor()
      const { conversationId } = visitor.session
      const reading = visitor.readPages()
      const writing = ['a', 'b', 'c'].map((clientOperationId) =>
        operator.messaging.sendAgentMessage({ conversationId, clientOperationId, body: clientOperationId }),
      )
      const { messages, lastSequence } = await reading
      const via = stack.gateways[race % 2]!.url
      const stream = await visitor.openStream({ after: lastSequence, via })
      const sent = (await Promise.all(writing)).map(({ message }) => message!.messageId)
      const ids = () =>
        [...messages, ...stream.events.map(({ data }) => data.message)].map(({ messageId }) => messageId)
      await until('the messages on pages or stream', () => ids().length >= sent.length)
      stream.close()
      expect(ids().toSorted()).toEqual(sent.toSorted())
    }
  })

  concurrentRule('S1.1', async () => {
    const { client, operator, stack } = suite().roomy
    // Read here, so that a missing operator skips the test.
    const { messaging } = operator

    async function play(steps: Step[], isConcurrent: boolean) {
      const visitor = await client.visitor()
      const { conversationId } = visitor.session
      const merge = createMerge()
      const streams: EventStream[] = []
      const read = async () => {
        const history = await repeated(() => visitor.history())
        history.forEach(merge.add)
        return history
      }
      /** Reconnects through the other gateway. The stream starts `back` events before the last received event. */
      async function connect(back: number) {
        const last = streams.at(-1)
        last?.close()
        const seen = last?.events.at(-1)?.sequence ?? startOf(last)
        const after = Math.max(0, seen - back)
        const via = stack.gateways[streams.length % 2]!.url
        const opened = Object.assign(await repeated(() => visitor.openStream({ after, via })), { after })
        expect(opened.status).toBe(200)
        streams.push(opened)
      }

      const perform: Record<Step['kind'], (step: never) => Promise<unknown>> = {
        async send({ operation }: { operation: number }) {
          const via = stack.gateways[operation % 2]!.url
          const answer = await repeated(() =>
            visitor.send(`visitor ${operation}`, { clientOperationId: `v${operation}`, via }),
          )
          expect(answer.status).toBe(202)
          merge.add(answer.body)
        },
        agent: ({ operation }: { operation: number }) =>
          messaging.sendAgentMessage({
            conversationId,
            clientOperationId: `a${operation}`,
            body: `agent ${operation}`,
          }),
        reconnect: ({ back }: { back: number }) => connect(back),
        renew: () => repeated(() => renew(visitor)),
        read,
      }

      await connect(0)
      const running: Promise<unknown>[] = []
      for (const each of steps) {
        const done = perform[each.kind](each as never)
        // A browser has only one stream and one renewal at a time. Sends, reads and agents' calls
        // may run concurrently.
        if (isConcurrent && each.kind !== 'reconnect' && each.kind !== 'renew') running.push(done)
        else await done
      }
      await Promise.all(running)
      await connect(0)
      const history = await read()
      const head = history.at(-1)?.sequence ?? 0
      const stream = streams.at(-1)!
      await until('the end of the log', () => head <= Math.max(stream.events.at(-1)?.sequence ?? 0, startOf(stream)))
      stream.close()

      for (const { events } of streams) {
        const sequences = events.map(({ sequence }) => sequence)
        expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b))
        for (const { data } of events) merge.add(data.message)
      }
      const fromStreams = new Set(streams.flatMap(({ events }) => events.map(({ data }) => data.message.messageId)))
      const expected = history.map(({ messageId, clientOperationId, sequence, body }) => {
        return { messageId, clientOperationId, sequence, body }
      })
      expect(merge.list()).toEqual(expected)
      expect(fromStreams).toEqual(new Set(expected.map(({ messageId }) => messageId)))
      const operations = new Set(
        steps.flatMap((each) => ('operation' in each ? [`${each.kind} ${each.operation}`] : [])),
      )
      expect(expected).toHaveLength(operations.size)
    }

    async function renew(visitor: Visitor) {
      const { sessionId, renewalToken } = visitor.session
      const answer = await client.call('POST', '/sessions/renew', {
        headers: bearer(visitor),
        body: { sessionId, renewalToken },
      })
      expect(answer.status).toBe(200)
      visitor.session = answer.body
    }

    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), fc.boolean(), play), {
      numRuns: runs,
      endOnFailure: true,
    })
  })
}

const startOf = (stream: EventStream | undefined) => (stream as { after?: number } | undefined)?.after ?? 0
