import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAllAsync } from '../../../test/support/for-all.ts'
import { runs } from '../../../test/support/is-long.ts'
import type { StreamEvent } from '../vocabulary/types.ts'
import { parseEvent, type ReaderCallbacks, readEvents } from './event-reader.ts'

function collect() {
  const events: StreamEvent[] = []
  const heartbeats: number[] = []
  let unreadable = 0
  const callbacks: ReaderCallbacks = {
    onEvent(event) {
      if (event) events.push(event)
      else unreadable += 1
    },
    onHeartbeat: (last) => heartbeats.push(last),
    onRetry: () => {},
    onActivity: () => {},
  }
  return { events, heartbeats, callbacks, unreadable: () => unreadable }
}

const bodyOf = (bytes: Uint8Array, size: number) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size))
      controller.close()
    },
  })

const wire = (sequence: number, text: string) =>
  `id: e1-${sequence}\nevent: message.received\ndata: ${JSON.stringify({ sequence, data: { text } })}\n\n`

it.each([1, 2, 3, 1_000])(
  'readEvents reads events and heartbeats from chunks of %i bytes, even if a character is split',
  async (size) => {
    const { events, heartbeats, callbacks } = collect()
    const bytes = new TextEncoder().encode(`retry: 2000\n\n${wire(1, 'grüße 🌿')}: hb 1\n\n${wire(2, 'zwei')}`)
    await readEvents(bodyOf(bytes, size), callbacks)
    expect(events.map(({ id, data }) => [id, data.text])).toEqual([
      ['e1-1', 'grüße 🌿'],
      ['e1-2', 'zwei'],
    ])
    expect(heartbeats).toEqual([1])
  },
)

it('readEvents ignores an event if the response ends before the end of the event', async () => {
  const { events, callbacks } = collect()
  await readEvents(bodyOf(new TextEncoder().encode(wire(1, 'whole') + wire(2, 'cut').slice(0, -1)), 7), callbacks)
  expect(events.map(({ sequence }) => sequence)).toEqual([1])
})

it.each(['not json', 'null', '{"sequence":"1","data":{}}', '{"sequence":1}', '[]'])(
  'readEvents calls onEvent with undefined if the data of an event is invalid: %s',
  async (data) => {
    const { events, callbacks, unreadable } = collect()
    await readEvents(
      bodyOf(new TextEncoder().encode(`id: e1-1\nevent: message.received\ndata: ${data}\n\n`), 64),
      callbacks,
    )
    expect(events).toEqual([])
    expect(unreadable()).toBe(1)
  },
)

it.each([
  ['text', `data: ${'x'.repeat(1_100_000)}`],
  ['lines', `data: ${'x'.repeat(1000)}\n`.repeat(1100)],
  ['unknown fields', Array.from({ length: 1100 }, (_, index) => `x${index}: ${'x'.repeat(1000)}\n`).join('')],
])('readEvents rejects if one event exceeds the maximum length because of its %s', async (_, text) => {
  const { callbacks } = collect()
  await expect(readEvents(bodyOf(new TextEncoder().encode(text), 100_000), callbacks)).rejects.toThrow()
})

it('readEvents reads an event that also has unknown fields', async () => {
  const { events, callbacks } = collect()
  const odd = '__proto__: {"sequence":2}\nconstructor: x\ntoString\nfield: 1\n'
  await readEvents(bodyOf(new TextEncoder().encode(odd + wire(1, 'whole')), 100_000), callbacks)
  expect(events.map(({ sequence }) => sequence)).toEqual([1])
})

it('readEvents reads random bytes in random chunks without an error', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc
      .array(fc.constantFrom('data:', 'id:', '\r', '\n', '\n\n', '\0', '\ufeff', '{', '"', ': hb ', '9'), {
        maxLength: 80,
      })
      .map((parts) => new TextEncoder().encode(parts.join(''))),
  )
  await forAllAsync([bytes, fc.integer({ min: 1, max: 20 })], runs(2_000, 10), async (given, size) => {
    const { events, callbacks } = collect()
    await readEvents(bodyOf(given, size), callbacks)
    for (const { sequence } of events) expect(Number.isSafeInteger(sequence)).toBe(true)
  })
})

it('readEvents parses random streams in random chunks with the same result as eventsource-parser', async () => {
  const line = fc.oneof(
    fc.constantFrom(
      '',
      'data',
      'data:',
      'data: {"sequence":1,"data":{}}',
      'id: e1-1',
      'event: message.received',
      'retry: 5',
    ),
    fc.constantFrom(': hb 7', ':hb 8', ': hb 9 ', 'retry: x', 'datax: no', ' data: no', 'event:typing.started', 'id'),
    fc.string({ maxLength: 12 }).filter((text) => !/[\r\n\0]/.test(text)),
  )
  const end = fc.constantFrom('\n', '\r', '\r\n')
  await forAllAsync(
    [fc.array(fc.tuple(line, end)), fc.integer({ min: 1, max: 40 })],
    runs(2_000, 10),
    async (lines, size) => {
      const text = lines.flat().join('')
      // A CR at the end of the text may be half of a CRLF, so readEvents waits for more bytes. Skip
      // texts that end with a CR.
      fc.pre(!text.endsWith('\r'))
      const expected: unknown[] = []
      const parser = createParser({
        onEvent: ({ id, event, data }) => {
          const read = parseEvent(id, event, data)
          expected.push(read ? read : 'unreadable')
        },
        onRetry: (ms) => expected.push(ms),
        onComment(comment) {
          const beat = /^\s*hb (\d+)\s*$/.exec(comment)
          if (beat) expected.push(`hb ${Number(beat[1])}`)
        },
      })
      parser.feed(text)
      const actual: unknown[] = []
      await readEvents(bodyOf(new TextEncoder().encode(text), size), {
        onEvent: (event) => actual.push(event ?? 'unreadable'),
        onRetry: (ms) => actual.push(ms),
        onHeartbeat: (last) => actual.push(`hb ${last}`),
        onActivity: () => {},
      })
      expect(actual).toEqual(expected)
    },
  )
})
