// Writes docs/events.md, tables of docs/receiving-leads.md and docs/integrating.md,
// webhooks/src/event-kinds.ts, contract/event-list.ts and the widget's wire types: `npm run make -- events`.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publicErrors } from '../../contract/errors.ts'
import { compatibility, type EventName, eventCategories } from '../../contract/event-categories.ts'
import { deliveryEvents, feedEvents, leadEventTypes } from '../../contract/event-kinds.ts'
import {
  NavigationAcknowledgementBody,
  ScreenshotAcknowledgementAnswer,
  ScreenshotAcknowledgementBody,
  UploadAnswer,
} from '../../gateway/schemas/commands.ts'
import { WidgetConfigAnswer } from '../../gateway/schemas/config.ts'
import { type EventDefinition, eventDefinitions } from '../../gateway/schemas/events.ts'
import { Envelope, PageContext } from '../../gateway/schemas/fields.ts'
import {
  AuthorAnswer,
  HistoryAnswer,
  MessageAnswer,
  RatingBody,
  SendMessageAnswer,
  SendMessageBody,
} from '../../gateway/schemas/messages.ts'
import { SessionAnswer } from '../../gateway/schemas/sessions.ts'

interface Shape {
  type?: string
  enum?: string[]
  format?: string
  description?: string
  properties?: Record<string, Shape>
  required?: string[]
  items?: Shape
  anyOf?: Shape[]
  additionalProperties?: Shape | boolean
  patternProperties?: Record<string, Shape>
}

/** Short notation: `{messageId, state: "sent" | "read"}`. */
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
    `| \`${name}\` | \`${shapeOf(data as Shape).replaceAll('|', '\\|')}\` | ${eventCategories[name]} | ${terminal} | ${replayed ? 'yes' : 'never'} | ${audience} | ${meaning} |`,
)

export function eventsDocument(): string {
  return `# Events

The events of \`GET /events\`. Each event has one line of data and a stable ID, \`<epoch>-<sequence>\`, which is the same on every stream and replay:

\`\`\`
id: 7f3a-42
event: message.received
data: {"sequence":42,"type":"message.received","category":"informational","occurredAt":"2026-01-02T03:04:05.678Z","data":{…}}
\`\`\`

Only \`availability.changed\` has neither an ID nor a \`sequence\`: it is not in the log and leaves the position as it is.

Always send \`Last-Event-ID\`. Before the first event it is \`replay.epoch\`, a hyphen and \`replay.lastSequence\` of the session. \`afterSequence\`
alone cannot show that the service restored a backup and that the sequence now belongs to another event.

Merge by \`id\`, and messages by \`messageId\`, then by \`clientOperationId\`. Sequences increase, with gaps. After a terminal event, stop all automatic
retries of the session. The \`category\` of an event says what to do with an unknown type, as \`compatibility\` of the configuration declares:
\`${Object.entries(compatibility)
    .map(([category, action]) => `${category}: ${action}`)
    .join('`, `')}\`. That is: ignore it; report an error and stop automatic sends; report an error and let the
command expire. Acknowledge known requests that you do not support as \`unsupported\`. This page is generated from \`gateway/schemas/events.ts\` (\`npm run make -- events\`).

| Type | \`data\` | Category | Terminal | Replayed | Streams of | Meaning |
|---|---|---|---|---|---|---|
${rows.join('\n')}

A \`message\` has the same shape as in the history: \`${shapeOf(MessageAnswer as Shape, false)}\`.

The stream of an ended session gets the terminal event, then closes. An event for one session goes to the streams of that session only;
other streams of the conversation see a gap in the sequences.

\`message.queued\`, \`message.retrying\`, \`message.retry.exhausted\`, \`offline.submitted\` and \`error\` are events of the browser package. They are created in the
browser; no stream carries them.
`
}

const receiving = join(import.meta.dirname, '../../docs/receiving-leads.md')

export function receivingDocument(): string {
  const rows = Object.entries(deliveryEvents).map(([name, { version, category, scope, when, data, ...kind }]) => {
    const { properties, required = [] } = data as Shape & { properties: Record<string, Shape> }
    const fields = Object.entries(properties).map(([field, { description, enum: values }]) => {
      const optional = required.includes(field) ? '' : ' if known'
      return `\`${field}\`${optional}${description ? ` (${description})` : ''}${values ? `: \`${values.join('`, `')}\`` : ''}`
    })
    const mapped = 'hasLeadFields' in kind ? ', the mapped fields' : ''
    return `| \`${name}\` | ${version} | ${category} | \`${scope}\` | ${when} | ${fields.join(', ')}${mapped} |`
  })
  const table = ['| `eventType` | Version | Category | Scope | When | `data` |', '|---|---|---|---|---|---|', ...rows]
  return readFileSync(receiving, 'utf8').replace(/\| `eventType` \|.*\n(?:\|.*\n)*/, `${table.join('\n')}\n`)
}

const eventList = join(import.meta.dirname, '../../contract/event-list.ts')

export function eventListModule(): string {
  const rows = Object.entries(deliveryEvents).map(([type, { when }]) => `  '${type}': '${when}',`)
  const leadTypes = leadEventTypes.map((type) => `  '${type}',`)
  return `// Written from contract/event-kinds.ts: \`npm run make -- events\`.

/** Every kind of event, and when it happens. Browsers do not need the schemas. */
export const eventList: Record<string, string> = {
${rows.join('\n')}
}

/** Events that lead subscriptions can have. */
export const leadEventTypes: string[] = [
${leadTypes.join('\n')}
]
`
}

const integrating = join(import.meta.dirname, '../../docs/integrating.md')

export function integratingDocument(): string {
  const rows = Object.entries(feedEvents).map(([type, { scope, when }]) => `| \`${type}\` | \`${scope}\` | ${when} |`)
  const table = ['| `type` | Content needs | When |', '|---|---|---|', ...rows]
  return readFileSync(integrating, 'utf8').replace(/\| `type` \| Content.*\n(?:\|.*\n)*/, `${table.join('\n')}\n`)
}

const biome = join(import.meta.dirname, '../../node_modules/.bin/biome')
const webhookKinds = join(import.meta.dirname, '../../webhooks/src/event-kinds.ts')

/** Objects accept new fields, because later versions add them. With `named`, a schema of the widget is its name. */
function typeOf(shape: Shape, named = true): string {
  const known = Object.entries(wireSchemas).find(([, schema]) => JSON.stringify(schema) === JSON.stringify(shape))
  if (named && known && shape.properties) return known[0]
  const { type, enum: values, properties = {}, required = [], items, anyOf } = shape
  const further = [shape.additionalProperties, ...Object.values(shape.patternProperties ?? {})]
  if (values) return values.map((value) => `'${value}'`).join(' | ')
  if (anyOf) return anyOf.map((each) => typeOf(each)).join(' | ')
  if (type === 'array') return `(${typeOf(items ?? {})})[]`
  if (type !== 'object')
    return { integer: 'number', number: 'number', string: 'string', boolean: 'boolean' }[type ?? ''] ?? 'unknown'
  const fields = Object.entries(properties).map(([name, field]) => {
    const comment = field.description
      ? `/** ${field.description[0]!.toUpperCase()}${field.description.slice(1).replace(/\.$/, '')}. */\n`
      : ''
    return `${comment}${name}${required.includes(name) ? '' : '?'}: ${typeOf(field)}`
  })
  const others = further.flatMap((each) => (typeof each === 'object' ? [`[field: string]: ${typeOf(each)}`] : []))
  return `{\n${[...fields, ...others].join('\n')}\n}`
}

function eventKindsSource() {
  const kinds = Object.entries(deliveryEvents)
  const types = kinds.map(([name, { when, data, ...kind }]) => {
    // The mapped fields of a lead are texts.
    const shape = 'hasLeadFields' in kind ? { ...data, additionalProperties: { type: 'string' } } : data
    return `/** Sent when ${when}. */\n'${name}': ${typeOf(shape as Shape)}`
  })
  const versions = kinds.map(([name, { version }]) => `'${name}': '${version}',`)
  return `// Written by \`npm run make -- events\` from contract/event-kinds.ts.

/** The data of each kind of event. Later versions of the service add kinds and fields. */
export interface EventData {
${types.join('\n')}
}

/** The version of each kind that this package knows. */
export const knownVersions: Record<keyof EventData, string> = {
${versions.join('\n')}
}
`
}

const widgetWire = join(import.meta.dirname, '../../widget/src/vocabulary/gen/wire.ts')

const wireSchemas: Record<string, object> = {
  PageContext,
  SessionContent: SessionAnswer,
  WidgetConfig: WidgetConfigAnswer,
  MessageInput: SendMessageBody,
  AcceptedMessage: SendMessageAnswer,
  MessageAuthor: AuthorAnswer,
  ServiceMessage: MessageAnswer,
  HistoryPage: HistoryAnswer,
  Rating: RatingBody,
  NavigationAcknowledgement: NavigationAcknowledgementBody,
  ScreenshotAcknowledgement: ScreenshotAcknowledgementBody,
  AcknowledgedScreenshot: ScreenshotAcknowledgementAnswer,
  UploadedScreenshot: UploadAnswer,
  ErrorEnvelope: Envelope,
}

const formatted = (path: string, input: string) =>
  execFileSync(biome, ['format', `--stdin-file-path=${path}`], { input, encoding: 'utf8' })

export function wireTypes(): string {
  const types = Object.entries(wireSchemas).map(([name, schema]) => `export interface ${name} ${typeOf(schema, false)}`)
  const head = '// Written by `npm run make -- events` from gateway/schemas.'
  const codes = `export type ServiceErrorCode = ${publicErrors.map(({ code }) => `'${code}'`).join(' | ')}`
  return formatted('widget/src/vocabulary/wire.ts', [head, ...types, codes].join('\n\n'))
}

export const eventKindsDocument = (): string => formatted('webhooks/src/event-kinds.ts', eventKindsSource())

if (import.meta.main) {
  writeFileSync(webhookKinds, eventKindsDocument())
  writeFileSync(widgetWire, wireTypes())
  writeFileSync(join(import.meta.dirname, '../../docs/events.md'), eventsDocument())
  writeFileSync(receiving, receivingDocument())
  writeFileSync(integrating, integratingDocument())
  writeFileSync(eventList, eventListModule())
}
