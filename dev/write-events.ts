// Writes docs/events.md from the definitions of the events in gateway/schemas/events.ts: `npm run docs:events`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EventDefinition, type EventName, eventDefinitions } from '../gateway/schemas/events.ts'
import { MessageAnswer } from '../gateway/schemas/messages.ts'

interface Shape {
  type?: string
  enum?: string[]
  format?: string
  properties?: Record<string, Shape>
  required?: string[]
}

/** A schema as a reader takes it in: `{messageId, state: "sent" | "read"}`. */
function shapeOf(shape: Shape, named = true): string {
  if (named && (shape as unknown) === MessageAnswer) return 'message'
  if (shape.enum) return shape.enum.map((value) => `"${value}"`).join(' | ')
  if (shape.type !== 'object') return shape.format === 'date-time' ? 'time' : (shape.type ?? 'any')
  const fields = Object.entries(shape.properties ?? {}).map(([name, field]) => {
    const optional = shape.required?.includes(name) ? '' : '?'
    return `${name}${optional}: ${shapeOf(field)}`
  })
  return `{${fields.join(', ')}}`
}

const rows = (Object.entries(eventDefinitions) as [EventName, EventDefinition][]).map(
  ([name, { data, terminal, replayed, audience, meaning }]) =>
    `| \`${name}\` | \`${shapeOf(data as Shape).replaceAll('|', '\\|')}\` | ${terminal} | ${replayed ? 'yes' : 'never'} | ${audience} | ${meaning} |`,
)

/** The document as the definitions have it. */
export function eventsDocument(): string {
  return `# Events

What \`GET /events\` carries. Each event has a stable id, \`<epoch>-<sequence>\`, the same on every stream and at every replay, and one line of data:

\`\`\`
id: 7f3a-42
event: message.received
data: {"sequence":42,"type":"message.received","occurredAt":"2026-01-02T03:04:05.678Z","data":{…}}
\`\`\`

Merge by \`id\`, and messages by \`messageId\`, then by \`clientOperationId\`. Sequences grow, with holes. After a terminal event stop every automatic
retry of the session. Ignore types that you do not know, but for navigation and screenshots: without support for them,
acknowledge them as \`unsupported\`. This page is written from \`gateway/schemas/events.ts\` (\`npm run docs:events\`).

| Type | \`data\` | Terminal | Replayed | Streams of | What it says |
|---|---|---|---|---|---|
${rows.join('\n')}

A \`message\` is the one of the history: \`${shapeOf(MessageAnswer as Shape, false)}\`.

A stream whose session is over gets the terminal event, then ends. An event for one session goes to that session's streams only; the
others of the conversation see a hole in the sequences.

\`message.queued\`, \`message.retrying\`, \`message.retry.exhausted\`, \`offline.submitted\` and \`error\` are events of the browser package, made in the
browser; no stream carries them.
`
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, '../docs/events.md'), eventsDocument())
