import { HistoryAnswer } from '../schemas/messages.ts'
import texts from './document.json' with { type: 'json' }

type Json = Record<string, unknown>

const [message] = (HistoryAnswer as { examples?: { messages: Json[] }[] }).examples![0]!.messages
const example = {
  sequence: 42,
  type: 'message.received',
  category: 'informational',
  occurredAt: '2026-01-02T03:04:09.120Z',
  data: { message },
}
const mediaType = 'text/event-stream'

/** Describes the event stream as OpenAPI 3.2 does: by the fields of one event. */
export function streamAnswer(): Json {
  const { description, itemSchema } = texts.eventStream
  const data = JSON.stringify(example)
  const shown = {
    dataValue: { id: '7f3a-42', event: example.type, data },
    serializedValue: `id: 7f3a-42\nevent: ${example.type}\ndata: ${data}\n\n`,
  }
  return { description, content: { [mediaType]: { itemSchema, examples: { [example.type]: shown } } } }
}

interface Described {
  openapi?: string
  paths?: Record<string, Record<string, { responses: Record<string, Json> }>>
}

/** Converts the document to 3.1, which has no `itemSchema`: the stream has the schema of its events' data. */
export function asOpenApi31(document: object): object {
  const older = structuredClone(document) as Described
  for (const operations of Object.values(older.paths ?? {}))
    for (const { responses } of Object.values(operations))
      for (const { content } of Object.values(responses) as { content?: Json }[])
        if (content?.[mediaType]) content[mediaType] = { schema: { $ref: '#/components/schemas/Event' }, example }
  return { ...older, openapi: '3.1.1' }
}
