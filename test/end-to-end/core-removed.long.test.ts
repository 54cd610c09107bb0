import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { type EventStream, startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
const visitorCount = 40

/** A visitor who writes continuously and repeats failed sends. */
interface Writer {
  visitor: Visitor
  stream: EventStream
  streamEnded: boolean
  /** Ids of acknowledged messages, by operation id. */
  acknowledged: Map<string, string>
  repeats: number
}

async function startWriter({ demo, gateways }: Stack, index: number): Promise<Writer> {
  const { url: gatewayUrl } = gateways[index % gateways.length]!
  const ids = { creationKey: randomUUID(), clientInstanceId: randomUUID() }
  // A busy machine may delay a core so much that its connections are cut. A visitor repeats the call.
  const visitor = await until('the session', () =>
    startVisitor({ gatewayUrl, origin: demo.origin, siteKey: demo.siteKey, ...ids }).catch((error: Error) => {
      expect(error.message).toMatch(/ServiceUnavailable|OperationInProgress/)
      return undefined
    }),
  )
  const stream = await visitor.openStream()
  expect(stream.status).toBe(200)
  const writer = { visitor, stream, streamEnded: false, acknowledged: new Map(), repeats: 0 }
  void stream.ended.then(() => {
    writer.streamEnded = true
  })
  return writer
}

async function write(writer: Writer, isWriting: () => boolean): Promise<void> {
  while (isWriting()) {
    const clientOperationId = randomUUID()
    for (;;) {
      const answer = await writer.visitor.send('Is it in stock?', { clientOperationId }).catch(() => undefined)
      if (answer?.status === 202) {
        writer.acknowledged.set(clientOperationId, answer.body.messageId)
        break
      }
      expect(answer?.body.retryable ?? true).toBe(true)
      writer.repeats++
      await delay(50)
    }
    await delay(10)
  }
}

async function expectNothingLost({ visitor, stream, acknowledged }: Writer): Promise<void> {
  const history = await visitor.history()
  expect(new Map(history.map(({ clientOperationId, messageId }) => [clientOperationId, messageId]))).toEqual(
    acknowledged,
  )
  expect(history).toHaveLength(acknowledged.size)
  await until('all messages on the stream', () => stream.events.length >= history.length)
  expect(stream.events.map(({ data }) => data.message.messageId)).toEqual(history.map(({ messageId }) => messageId))
}

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })
})

describe('while 40 visitors write through two gateways', () => {
  it.each([
    { signal: 'SIGTERM', what: 'stops' },
    { signal: 'SIGKILL', what: 'is killed' },
    { signal: 'SIGSTOP', what: 'hangs with open connections' },
  ] as const)(
    'if one of two cores $what, no message is lost, no stream ends and no visitor repeats more than one send',
    async ({ signal }) => {
      const writers = await Promise.all(Array.from({ length: visitorCount }, (_, index) => startWriter(stack, index)))
      const total = () => writers.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0)
      let writing = true
      const ended = writers.map((writer) => write(writer, () => writing))

      await until('some messages', () => total() > 200)
      const removed = stack.cores[0]!.process()
      removed.kill(signal)
      const soFar = total()
      await until('messages without it', () => total() > soFar + 400)

      // The resumed core finishes the writes that it had begun. These writes must not duplicate messages.
      if (signal === 'SIGSTOP') removed.kill('SIGCONT')
      await until('messages after it', () => total() > soFar + 600)
      writing = false
      await Promise.all(ended)

      for (const writer of writers) await expectNothingLost(writer)
      expect(writers.filter(({ streamEnded }) => streamEnded)).toEqual([])
      expect(Math.max(...writers.map(({ repeats }) => repeats))).toBeLessThanOrEqual(1)
      for (const { stream } of writers) stream.close()
      if (signal !== 'SIGSTOP') await stack.cores[0]!.start()
    },
  )
})
