import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { isLong } from '../support/is-long.ts'
import { operatorOf } from '../support/operator.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { type EventStream, startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
const visitorCount = isLong ? 15 : 5

/**
 * Follows a visitor's stream as a browser does: reopens it from the last position whenever it ends.
 */
function followStream(visitor: Visitor) {
  const streams: EventStream[] = []
  let following = true
  const events = () => streams.flatMap((stream) => stream.events)

  async function follow() {
    while (following) {
      const last = events().at(-1)
      const stream = await visitor
        .openStream({ after: last?.sequence ?? 0, lastEventId: last?.id })
        .catch(() => undefined)
      if (stream?.status === 200) {
        streams.push(stream)
        await stream.ended
      }
      await delay(20 + Math.random() * 80)
    }
  }

  void follow()
  return {
    events,
    stop() {
      following = false
      for (const stream of streams) stream.close()
    },
  }
}

it('when a core crashes, no acknowledged message of several visitors is lost or duplicated, and every stream resumes', async () => {
  const stack = await startStack({ database, cores: 1, gateways: 1, env: { RATE_LIMIT_FACTOR: '1000' } })
  const { demo, cores, gateways } = stack
  const visitors = await Promise.all(
    Array.from({ length: visitorCount }, () =>
      startVisitor({ gatewayUrl: gateways[0]!.url, origin: demo.origin, siteKey: demo.siteKey }),
    ),
  )
  const streams = visitors.map(followStream)
  const acknowledged = visitors.map(() => new Map<string, string>())
  let sending = true

  const sends = visitors.map(async (visitor, index) => {
    while (sending) {
      const clientOperationId = randomUUID()
      const { status, body } = await visitor.sendUntilAccepted(`from visitor ${index}`, clientOperationId)
      expect(status).toBe(202)
      acknowledged[index]!.set(clientOperationId, body.messageId)
    }
  })
  const total = () => acknowledged.reduce((sum, { size }) => sum + size, 0)

  await until('some messages', () => total() > 4 * visitorCount)
  await cores[0]!.kill()
  await delay(300)
  await cores[0]!.start()
  const soFar = total()
  await until('messages after the restart', () => total() > soFar + 4 * visitorCount)
  sending = false
  await Promise.all(sends)

  const operator = operatorOf(cores[0]!.url, demo.serviceToken)
  for (const [index, visitor] of visitors.entries()) {
    const history = await visitor.history()
    const sequences = history.map(({ sequence }) => sequence)
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
    // Each send must be stored once, with the acknowledged id.
    expect(new Map(history.map(({ clientOperationId, messageId }) => [clientOperationId, messageId]))).toEqual(
      acknowledged[index],
    )
    expect(history).toHaveLength(acknowledged[index]!.size)

    await until(
      'the stream to reach the end of the log',
      () => (streams[index]!.events().at(-1)?.sequence ?? 0) >= (sequences.at(-1) ?? 0),
    )
    expect(streams[index]!.events().map(({ data }) => data.message.messageId)).toEqual(
      history.map(({ messageId }) => messageId),
    )
    streams[index]!.stop()
  }
  // The inbox must list every conversation.
  const { conversations } = await operator.messaging.listConversations({ limit: 100 })
  expect(conversations).toHaveLength(visitorCount)
})
