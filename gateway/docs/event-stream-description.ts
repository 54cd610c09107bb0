import { HistoryAnswer } from '../schemas/messages.ts'

type Json = Record<string, unknown>

const [message] = (HistoryAnswer as { examples?: { messages: Json[] }[] }).examples![0]!.messages
const example = {
  sequence: 42,
  type: 'message.received',
  category: 'informational',
  occurredAt: '2026-01-02T03:04:09.120Z',
  data: { message },
}
const Event = { $ref: '#/components/schemas/Event' }
const mediaType = 'text/event-stream'

/** Describes the event stream as OpenAPI 3.2 does: by the fields of one event. */
export const streamAnswer = (): Json => ({
  description: 'The event stream. It stays open, with a heartbeat comment `: hb 42` now and then.',
  content: {
    [mediaType]: {
      itemSchema: {
        type: 'object',
        properties: {
          id: { type: 'string', description: '`<epoch>-<sequence>`, the position for `Last-Event-ID`.' },
          event: { type: 'string', description: 'The type of the event.' },
          data: { type: 'string', contentMediaType: 'application/json', contentSchema: Event },
          retry: { type: 'integer', description: 'Milliseconds to wait before a reconnect.' },
        },
        required: ['event', 'data'],
      },
      examples: {
        [example.type]: {
          dataValue: { id: '7f3a-42', event: example.type, data: JSON.stringify(example) },
          serializedValue: `id: 7f3a-42\nevent: ${example.type}\ndata: ${JSON.stringify(example)}\n\n`,
        },
      },
    },
  },
})

interface Described {
  openapi?: string
  paths?: Record<string, Record<string, { responses: Record<string, Json> }>>
}

/** For tools that do not read 3.2, which alone has `itemSchema`: the stream has the schema of its events' data. */
export function asOpenApi31(document: object): object {
  const older = structuredClone(document) as Described
  for (const operations of Object.values(older.paths ?? {}))
    for (const { responses } of Object.values(operations))
      for (const { content } of Object.values(responses) as { content?: Json }[])
        if (content?.[mediaType]) content[mediaType] = { schema: Event, example }
  return { ...older, openapi: '3.1.1' }
}
