import { validatorOf } from '../support/json-schema.ts'

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is untyped
type Json = any

/** Checks responses against the OpenAPI document of a gateway. */
export interface DocumentCheck {
  /**
   * Lists how a response differs from the document: status, content type or body. The list is empty
   * if the document has no such operation.
   */
  problems(method: string, path: string, answer: { status: number; headers: Headers; body: Json }): string[]
  /** Lists how an event differs from its schema. */
  eventProblems(event: { type: string }): string[]
}

export async function loadDocument(gatewayUrl: string): Promise<DocumentCheck> {
  const document: Json = await (await fetch(`${gatewayUrl}/docs/openapi.json`)).json()
  const { components } = document
  const compiled = new Map<object, (value: unknown) => string[]>()
  const operations = Object.entries(document.paths).flatMap(([template, methods]) =>
    Object.entries(methods as Json).map(([method, operation]) => ({
      method: method.toUpperCase(),
      pattern: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`),
      operation: operation as Json,
    })),
  )

  function problemsOf(schema: object, value: unknown) {
    const validate = compiled.get(schema) ?? validatorOf({ ...schema, components })
    compiled.set(schema, validate)
    return validate(value)
  }

  return {
    problems(method, path, { status, headers, body }) {
      const found = operations.find((each) => each.method === method && each.pattern.test(path))
      if (found === undefined) return []
      const response = found.operation.responses[status]
      if (response === undefined) return ['status is not described']
      const type = headers.get('content-type')?.split(';')[0] ?? ''
      if (response.content === undefined) return body === undefined ? [] : ['a body is not described']
      const content = response.content[type]
      if (content === undefined) return [`content type ${type} is not described`]
      return type === 'application/json' ? problemsOf(content.schema, body) : []
    },

    eventProblems(event) {
      const schema = components.schemas[`Event.${event.type}`]
      return schema === undefined ? [`${event.type} is not described`] : problemsOf(schema, event)
    },
  }
}
