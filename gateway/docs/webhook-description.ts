import { deliveryEvents, type EventKind } from '../../contract/event-kinds.ts'
import texts from './document.json' with { type: 'json' }

type Json = Record<string, unknown>

const text = { type: 'string' }
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
      const operation = {
        operationId: operationIdOf(type),
        summary: `Sent when ${when}`,
        description: 'Verify a signature before you parse the body. Accept and ignore unknown types.',
        tags: ['Webhooks'],
        parameters: texts.webhookHeaders,
        requestBody: {
          required: true,
          content: { 'application/json': { schema: refOf(schemaName(type)), example: body } },
        },
        responses: {
          '2XX': { description: 'Accepted: the receiver has stored the event.' },
          default: { description: 'Not accepted. 408, 425, 429 and 5xx are retried, others fail.' },
        },
      }
      return [type, { post: operation }]
    }),
  )
}

export function webhookSchemas(): Json {
  const schemas = kinds.map(([type, { when, hasLeadFields, data }]) => [
    schemaName(type),
    {
      type: 'object',
      description: `Sent when ${when}.`,
      properties: {
        eventType: { type: 'string', enum: [type] },
        id: text,
        contractVersion: text,
        occurredAt: { type: 'string', format: 'date-time' },
        test: { type: 'boolean', description: 'True for a test of the destination.' },
        // The mapped fields of a lead are texts.
        data: hasLeadFields ? { ...data, additionalProperties: text } : data,
      },
      required: ['eventType', 'id', 'contractVersion', 'occurredAt', 'data'],
    },
  ])
  return Object.fromEntries(schemas)
}
