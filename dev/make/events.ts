// Writes docs/events.md, tables of docs/receiving-leads.md and docs/integrating.md,
// webhooks/src/event-kinds.ts and the widget's wire types: `npm run make -- events`.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { publicErrors } from '../../contract/errors.ts'
import { compatibility, type EventName, eventCategories } from '../../contract/event-categories.ts'
import {
  type DeliveryEventType,
  deliveryEvents,
  type EventKind,
  eventOccasions,
  feedEvents,
  feedEventTypes,
} from '../../contract/event-kinds.ts'
import {
  NavigationAcknowledgementBody,
  ScreenshotAcknowledgementAnswer,
  ScreenshotAcknowledgementBody,
  UploadAnswer,
} from '../../gateway/routes/commands.ts'
import { SessionAnswer } from '../../gateway/routes/sessions.ts'
import { WidgetConfigAnswer } from '../../gateway/schemas/config.ts'
import meanings from '../../gateway/schemas/events.json' with { type: 'json' }
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
import { between, readProjectFile, withRows, writeProjectFile } from './documents.ts'

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

/** Returns a short notation of a schema: `{messageId, state: "sent" | "read"}`. */
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
  ([name, { data, terminal, replayed, audience }]) =>
    `| \`${name}\` | \`${shapeOf(data as Shape).replaceAll('|', '\\|')}\` | ${eventCategories[name]} | ${terminal} | ${replayed ? 'yes' : 'never'} | ${audience} | ${meanings[name]} |`,
)

export function eventsDocument(): string {
  const actions = Object.entries(compatibility).map(([category, action]) => `${category}: ${action}`)
  const document = between(readProjectFile('docs/events.md'), 'declares:\n`', '`. That is', actions.join('`, `'))
  const message = shapeOf(MessageAnswer as Shape, false)
  const withMessage = between(document, 'the same shape as in the history: `', '`.\n', message)
  return withRows(withMessage, 'Type | `data` | Category | Terminal | Replayed | Streams of | Meaning', rows)
}

const kinds = Object.entries(deliveryEvents) as [DeliveryEventType, EventKind][]

export function receivingDocument(): string {
  const rows = kinds.map(([name, { version, category, scope, data, hasLeadFields }]) => {
    const { properties, required = [] } = data as Shape & { properties: Record<string, Shape> }
    const fields = Object.entries(properties).map(([field, { description, enum: values }]) => {
      const optional = required.includes(field) ? '' : ' if known'
      return `\`${field}\`${optional}${description ? ` (${description})` : ''}${values ? `: \`${values.join('`, `')}\`` : ''}`
    })
    const mapped = hasLeadFields ? ', the mapped fields' : ''
    return `| \`${name}\` | ${version} | ${category} | \`${scope}\` | ${eventOccasions[name]} | ${fields.join(', ')}${mapped} |`
  })
  const document = readProjectFile('docs/receiving-leads.md')
  return withRows(document, '`eventType` | Version | Category | Scope | When | `data`', rows)
}

export function integratingDocument(): string {
  const rows = feedEventTypes.map((type) => `| \`${type}\` | \`${feedEvents[type].scope}\` | ${eventOccasions[type]} |`)
  return withRows(readProjectFile('docs/integrating.md'), '`type` | Content needs | When', rows)
}

const biome = join(import.meta.dirname, '../../node_modules/.bin/biome')

/** Returns a type. Objects accept the fields of later versions. With `named`, a schema of the widget is its name. */
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
  const types = kinds.map(([name, { data, hasLeadFields }]) => {
    // The mapped fields of a lead are texts.
    const shape = hasLeadFields ? { ...data, additionalProperties: { type: 'string' } } : data
    return `/** Sent when ${eventOccasions[name]}. */\n'${name}': ${typeOf(shape as Shape)}`
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
  writeProjectFile('webhooks/src/event-kinds.ts', eventKindsDocument())
  writeProjectFile('widget/src/vocabulary/gen/wire.ts', wireTypes())
  writeProjectFile('docs/events.md', eventsDocument())
  writeProjectFile('docs/receiving-leads.md', receivingDocument())
  writeProjectFile('docs/integrating.md', integratingDocument())
}
