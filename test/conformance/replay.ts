import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { until, untilSettled } from '../support/until.ts'
import type { EventStream, Visitor } from '../support/visitor.ts'
import { readRaw } from './raw-stream.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

const sequencesOf = ({ events }: EventStream) => events.map(({ sequence }) => sequence)

export async function sendMany(visitor: Visitor, count: number) {
  for (let index = 0; index < count; index++) expect((await visitor.send(`message ${index}`)).status).toBe(202)
}

/** Sends messages of an agent, one after the other. No rate limit applies to them. */
export async function sendAgentMessages({ roomy }: Suite, { session }: Visitor, count: number, body = 'Hello') {
  const { conversationId } = session
  for (let index = 1; index <= count; index++)
    await roomy.operator.messaging.sendAgentMessage({ conversationId, clientOperationId: `fill-${index}`, body })
}

/** Tests of contract section 4: the start position of a stream, and replay. */
export function replayRules(suite: () => Suite): void {
  rule('C4.1', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    await sendMany(visitor, 3)
    const live = await visitor.openStream({ after: 0 })
    const replayed = await visitor.openStream({ after: 0, via: stack.gateways[1]!.url })
    for (const stream of [live, replayed]) {
      await until('three events', () => stream.events.length === 3)
      stream.close()
    }
    const { epoch } = visitor.session.replay
    expect(live.events.map(({ id }) => id)).toEqual([`${epoch}-1`, `${epoch}-2`, `${epoch}-3`])
    expect(replayed.events).toEqual(live.events)
  })

  rule('C4.2', async () => {
    const visitor = await suite().roomy.client.visitor()
    await visitor.send('hello\nthere')
    const text = await readRaw(suite().roomy, visitor, '?afterSequence=0', (received) => received.includes('data:'))
    const [block = ''] = text.split('\n\n').filter((each) => each.includes('data:'))
    const lines = block.split('\n')
    expect(lines.map((line) => line.slice(0, line.indexOf(':')))).toEqual(['id', 'event', 'data'])
    const data = JSON.parse(lines[2]!.slice('data: '.length))
    expect(Object.keys(data).sort()).toEqual(['category', 'data', 'occurredAt', 'sequence', 'type'])
    expect(lines[1]).toBe(`event: ${data.type}`)
  })

  rule('C4.3', async () => {
    const visitor = await suite().roomy.client.visitor()
    await sendMany(visitor, 5)
    const { epoch } = visitor.session.replay
    for (const [after, seen, expected] of [
      [1, 3, [4, 5]],
      [4, 2, [5]],
      [0, 4, [5]],
    ] as const) {
      const stream = await visitor.openStream({ after, lastEventId: `${epoch}-${seen}` })
      await until('the rest', () => stream.events.length >= expected.length)
      expect(sequencesOf(stream)).toEqual(expected)
      stream.close()
    }
  })

  rule('C4.4', async () => {
    const visitor = await suite().roomy.client.visitor()
    await sendMany(visitor, 3)
    const stream = await visitor.openStream()
    await visitor.send('live')
    await until('the live one', () => stream.events.length > 0)
    expect(sequencesOf(stream)).toEqual([4])
    stream.close()
  })

  rule('C4.5', async () => {
    const { client, stack } = suite().roomy
    const visitor = await client.visitor()
    const sending = sendMany(visitor, 18)
    const streams: EventStream[] = []
    for (let index = 0; index < 5; index++) {
      streams.push(await visitor.openStream({ after: 0, via: stack.gateways[index % 2]!.url }))
      await delay(5)
    }
    await sending
    for (const stream of streams) {
      await until('all events', () => stream.events.length >= 18)
      expect(sequencesOf(stream)).toEqual(Array.from({ length: 18 }, (_, index) => index + 1))
      stream.close()
    }
  })

  async function expectReset(
    visitor: Visitor,
    start: { after?: number; lastEventId?: string },
    reason: string,
    head: number,
  ) {
    const stream = await visitor.openStream(start)
    await untilSettled('the end of the stream', stream.ended)
    expect(stream.status).toBe(200)
    expect(stream.events).toEqual([
      {
        id: `${visitor.session.replay.epoch}-${head}`,
        type: 'replay.reset.required',
        sequence: head,
        data: { reason, reauthenticationRequired: false },
      },
    ])
  }

  rule('C4.6', async () => {
    const visitor = await suite().roomy.client.visitor()
    const { replayWindowEvents } = suite()
    const count = replayWindowEvents + 3
    await sendAgentMessages(suite(), visitor, count)
    await expectReset(visitor, { after: 2 }, 'window_exceeded', count)
    const inside = await visitor.openStream({ after: 3 })
    await until('the window', () => inside.events.length === replayWindowEvents)
    inside.close()
  })

  rule('C4.7', async () => {
    const visitor = await suite().roomy.client.visitor()
    await sendMany(visitor, 1)
    await expectReset(visitor, { after: 2 }, 'position_unknown', 1)
    await expectReset(visitor, { lastEventId: `${visitor.session.replay.epoch}-99` }, 'position_unknown', 1)
  })

  rule('C4.8', async () => {
    const visitor = await suite().roomy.client.visitor()
    await sendMany(visitor, 1)
    const { epoch } = visitor.session.replay
    for (const lastEventId of [
      'other-1',
      'nonsense',
      `${epoch}-x`,
      `${epoch}-01`,
      `${epoch}-1-1`,
      `${epoch}-99999999999`,
    ])
      await expectReset(visitor, { lastEventId }, 'epoch_changed', 1)
  })

  rule('C4.20', async () => {
    const visitor = await suite().short.client.visitor()
    await sendMany(visitor, 1)
    await delay(1_100)
    await expectReset(visitor, { after: 0 }, 'window_exceeded', 1)
  })
}
