import { Validator } from '@seriousme/openapi-schema-validator'
import { createParser } from 'eventsource-parser'
import { describe, expect, test } from 'vitest'
import { deliveryEvents } from '../../contract/event-kinds.ts'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { validatorOf } from '../../test/support/json-schema.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const PREFIX = '/api/integrations/v1/widget'

// biome-ignore lint/suspicious/noExplicitAny: the tests inspect an arbitrary document
type Document = any

async function startWithDocument() {
  const { url } = await startTestGateway()
  const document: Document = await (await fetch(`${url}/docs/openapi.json`)).json()
  return { url, document }
}

describe('the OpenAPI document', () => {
  test.each([
    ['3.2.0', 'openapi.json'],
    ['3.1.1', 'openapi-3.1.json'],
  ])('is valid OpenAPI %s at /docs/%s', async (version, name) => {
    const { url } = await startTestGateway()
    const response = await fetch(`${url}/docs/${name}`)
    expect(response.headers.get('content-type')).toContain('application/json')
    const document: Document = await response.json()
    expect(document.openapi).toBe(version)
    expect(await new Validator().validate(document)).toEqual({ valid: true })
  })

  test('describes the stream by its events, and in 3.1 by their data', async () => {
    const { url, document } = await startWithDocument()
    const { content } = document.paths[`${PREFIX}/events`].get.responses[200]
    const { itemSchema, schema, examples } = content['text/event-stream']
    expect(schema).toBeUndefined()
    expect(itemSchema.properties.data.contentSchema).toEqual({ $ref: '#/components/schemas/Event' })
    const { dataValue, serializedValue } = examples['message.received']
    const parsed: Document[] = []
    createParser({ onEvent: (event) => parsed.push(event) }).feed(serializedValue)
    expect(parsed).toEqual([dataValue])
    const older: Document = await (await fetch(`${url}/docs/openapi-3.1.json`)).json()
    const { responses } = older.paths[`${PREFIX}/events`].get
    expect(responses[200].content['text/event-stream']).toEqual({
      schema: { $ref: '#/components/schemas/Event' },
      example: JSON.parse(dataValue.data),
    })
  })

  test('describes each kind of event that destinations receive, with a valid example', async () => {
    const { document } = await startWithDocument()
    const { schemas } = document.components
    expect(Object.keys(document.webhooks)).toEqual(Object.keys(deliveryEvents))
    for (const [type, { post }] of Object.entries(document.webhooks) as [string, Document][]) {
      const { schema, example } = post.requestBody.content['application/json']
      expect(schema).toEqual({ $ref: `#/components/schemas/Webhook.${type}` })
      const problems = validatorOf({ ...schema, components: { schemas } })
      expect(problems(example), type).toEqual([])
      expect(problems({ ...example, later: 1 }), type).toEqual([])
      expect(problems({ ...example, data: {} }), type).not.toEqual([])
      const sent = Object.keys(
        webhookHeaders({
          deliveryId: 'dlv_1',
          correlationId: 'c',
          body: new Uint8Array(),
          secrets: { active: 'whsec_AA==', all: ['whsec_AA=='] },
          at: 0,
        }),
      )
      const described = post.parameters.map(({ name }: Document) => name.toLowerCase())
      expect(described.toSorted()).toEqual(sent.filter((name) => !/^(content-type|user-agent)$/.test(name)).toSorted())
    }
  })
})
