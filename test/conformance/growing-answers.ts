import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { botOf, robo } from '../support/bot.ts'
import { until } from '../support/until.ts'
import type { EventStream } from '../support/visitor.ts'
import { bearer } from './client.ts'
import { MissingAccess } from './missing-access.ts'
import { rule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of answers that grow (contract, section 8, rules 35 to 39). */
export function growingAnswerRules(suite: () => Suite): void {
  async function begin() {
    const { client, operator, stack } = suite().roomy
    const bots = await botOf(stack).catch(() => {
      throw new MissingAccess('the token of a bot')
    })
    const visitor = await client.visitor()
    const { conversationId } = visitor.session
    await visitor.send('hello')
    const clientOperationId = randomUUID()
    const append = (offset: number, text: string, more = {}) =>
      bots.appendBotMessage({ conversationId, clientOperationId, offset, text, bot: robo, ...more })
    const stop = (messageId: string, headers = {}) =>
      client.call('POST', `/messages/${messageId}/stop`, { headers: { ...bearer(visitor), ...headers } })
    return { client, operator, stack, bots, visitor, conversationId, append, stop }
  }

  rule('C8.35', async () => {
    const { visitor, append } = await begin()
    const first = await append(0, 'Grüße 😀')
    expect(first).toMatchObject({ length: 7, state: 'growing', replayed: false })
    expect(await append(0, 'Grüße 😀')).toMatchObject({ messageId: first.messageId, length: 7, replayed: true })
    expect(await append(7, ' aus Graz')).toMatchObject({ length: 16, state: 'growing', replayed: false })
    await expect(append(0, 'Gruß')).rejects.toThrow('IdempotencyConflict')
    await expect(append(17, 'x')).rejects.toThrow('ValidationFailed')
    await expect(append(16, 'x'.repeat(suite().agentBodyLength - 15))).rejects.toThrow('ValidationFailed')
    await expect(append(16, 'x', { quickReplies: ['a', 'a'], done: true })).rejects.toThrow('ValidationFailed')
    const end = { done: true, quickReplies: ['Thanks'] }
    expect(await append(16, '.', end)).toMatchObject({ length: 17, state: 'completed', replayed: false })
    expect(await append(16, '.', end)).toMatchObject({ length: 17, state: 'completed', replayed: true })
    const messages = await visitor.history()
    expect(messages.slice(1)).toMatchObject([
      { messageId: first.messageId, body: 'Grüße 😀 aus Graz.', quickReplies: ['Thanks'], author: { kind: 'bot' } },
    ])
    expect(messages[1].growing).toBeUndefined()
  })

  rule('C8.36', async () => {
    const { stack, visitor, append } = await begin()
    const streams = await Promise.all(stack.gateways.map(({ url }) => visitor.openStream({ after: 0, via: url })))
    let text = ''
    for (let index = 0; index < 12; index += 1) {
      const part = `part ${index} 😀 `
      await append([...text].length, part)
      text += part
    }
    await until('the text', () => streams.every((stream) => shownBy(stream) === text))
    const whole = await visitor.readPages()
    expect(whole.messages[1]).toMatchObject({ body: text, growing: true })
    const late = await visitor.openStream({ after: 0 })
    await until('the replay', () => shownBy(late) === text)
    expect(late.events.filter(({ type }) => type === 'message.received')).toHaveLength(1)
    const resumed = await visitor.openStream({
      lastEventId: streams[0]!.events.find(({ id }) => id !== '')!.id,
      after: whole.lastSequence,
    })
    await until('the whole text', () => resumed.events.length > 0)
    expect(resumed.events[0]).toMatchObject({ id: '', type: 'message.grew', data: { offset: 0, text } })
    await append([...text].length, 'end', { done: true })
    for (const stream of [...streams, late, resumed]) {
      await until('the end', () => stream.events.some(({ type }) => type === 'message.completed'))
      const { data, sequence } = stream.events.at(-1)!
      expect(data.message).toMatchObject({ body: `${text}end`, sequence: whole.messages[1].sequence })
      expect(sequence).toBeGreaterThan(data.message.sequence)
      const grew = stream.events.filter(({ type }) => type === 'message.grew')
      expect(grew.every(({ id, sequence: own }) => id === '' && own === undefined)).toBe(true)
    }
    const after = await visitor.openStream({ after: 0 })
    await until('the replay', () => after.events.length === 3)
    expect(after.events.map(({ type, data }) => [type, data.message?.growing])).toEqual([
      ['message.accepted', undefined],
      ['message.received', undefined],
      ['message.completed', undefined],
    ])
    for (const stream of [...streams, late, resumed, after]) stream.close()
  })

  rule('C8.37', async () => {
    const { client, visitor, append, stop, bots, conversationId, stack } = await begin()
    const stream = await visitor.openStream({ after: 0 })
    const { messageId } = await append(0, 'one')
    const key = { 'idempotency-key': 'stop' }
    const stopped = await stop(messageId, key)
    expect([stopped.status, stopped.body]).toEqual([202, { messageId, state: 'stopped', sequence: expect.any(Number) }])
    const again = await client.call('POST', `/messages/${messageId}/stop`, {
      headers: { ...bearer(visitor), ...key },
      via: stack.gateways.at(-1)!.url,
    })
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([stopped.body, 'true'])
    expect(await append(3, ' two')).toMatchObject({ state: 'stopped', length: 3 })
    await until('the end', () => stream.events.at(-1)?.type === 'message.completed')
    expect(stream.events.at(-1)).toMatchObject({ sequence: stopped.body.sequence, data: { message: { body: 'one' } } })
    stream.close()
    const other = await bots.appendBotMessage({ conversationId, clientOperationId: randomUUID(), text: 'b', bot: robo })
    const headers = bearer(visitor)
    await client.fails('IdempotencyConflict', 'POST', `/messages/${other.messageId}/stop`, {
      headers: { ...headers, ...key },
    })
    await client.fails('NotFound', 'POST', '/messages/msg_0/stop', { headers })
    await client.fails('IdempotencyKeyInvalid', 'POST', `/messages/${messageId}/stop`, {
      headers: { ...headers, 'idempotency-key': null },
    })
  })

  rule('C8.38', async () => {
    const ends: ((scene: Awaited<ReturnType<typeof begin>>, sequence: number) => Promise<unknown>)[] = [
      ({ operator, conversationId }) => operator.messaging.stopBot({ conversationId }),
      ({ bots, conversationId }) =>
        bots.requestHuman({ conversationId, clientOperationId: randomUUID(), bot: robo, summary: 'Help' }),
      ({ operator, conversationId }, sequence) => operator.messaging.redactMessage({ conversationId, sequence }),
    ]
    for (const end of ends) {
      const scene = await begin()
      await scene.append(0, 'one')
      const { sequence } = (await scene.visitor.history())[1]
      await end(scene, sequence)
      expect(await scene.append(3, ' two')).toMatchObject({ state: 'interrupted', length: 3 })
      const { growing } = (await scene.visitor.history())[1]
      expect(growing).toBeUndefined()
    }
  })

  rule('C8.39', async () => {
    const { operator, append, conversationId, stack } = await begin()
    let cursor = ''
    const bodies: (string | undefined)[] = []
    /** Reads on until the end of the feed, because each call reads a limited number of entries. */
    const listed = async () => {
      for (let last: string | undefined; last !== cursor; ) {
        last = cursor
        const page = await operator.events.listEvents({
          workspaceId: stack.demo.workspaceId,
          types: ['message.bot'],
          limit: 100,
          cursor,
        })
        cursor = page.cursor
        const own = page.events.filter((event) => event.conversationId === conversationId)
        bodies.push(...own.map(({ message }) => message?.message?.body))
      }
      return bodies
    }
    await append(0, 'one ')
    await append(4, 'two')
    expect(await listed()).toEqual([])
    await append(7, ' three', { done: true })
    await until('the entry', async () => (await listed()).length > 0)
    expect(await listed()).toEqual(['one two three'])
  })
}

/** Returns the text that a reader shows of the answer. Throws if a part is missing. */
function shownBy({ events }: EventStream): string {
  let text = ''
  for (const { type, data } of events) {
    if (data.message?.author.kind === 'bot') text = data.message.body
    if (type !== 'message.grew') continue
    const points = [...text]
    if (data.offset > points.length) throw new Error(`a part before ${data.offset} is missing`)
    text = points.slice(0, data.offset).join('') + data.text
  }
  return text
}
