import { deliveryEvents, type EventKind } from '../../contract/event-kinds.ts'
import texts from './document.json' with { type: 'json' }

type Json = Record<string, unknown>

const { operation, schema } = texts.webhooks
const kinds = Object.entries(deliveryEvents) as [string, EventKind][]
const schemaName = (type: string) => `Webhook.${type}`
const refOf = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Returns `receiveLeadCaptured` for `lead.captured`. */
const operationIdOf = (type: string) =>
  ['receive', ...type.split(/[.-]/).map((word) => `${word[0]!.toUpperCase()}${word.slice(1)}`)].join('')

export function webhookPaths(): Json {
  return Object.fromEntries(
    kinds.map(([type, { version, when, example }]) => {
      const occurredAt = '2026-11-20T12:00:00.000Z'
      const body = { eventType: type, id: 'dlv_1', contractVersion: version, occurredAt, data: example }
      const content = { 'application/json': { schema: refOf(schemaName(type)), example: body } }
      const summary = `Sent when ${when}`
      const requestBody = { required: true, content }
      return [type, { post: { ...operation, operationId: operationIdOf(type), summary, requestBody } }]
    }),
  )
}

export function webhookSchemas(): Json {
  const schemas = kinds.map(([type, { when, hasLeadFields, data }]) => {
    const properties = {
      eventType: { type: 'string', enum: [type] },
      ...schema.properties,
      // The mapped fields of a lead are texts.
      data: hasLeadFields ? { ...data, additionalProperties: { type: 'string' } } : data,
    }
    return [schemaName(type), { ...schema, description: `Sent when ${when}.`, properties }]
  })
  return Object.fromEntries(schemas)
}
