import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { webhookHeaders } from '../../contract/webhook-headers.ts'
import { newSecret, sampleBody } from '../support/hostile-deliveries.ts'

type Condition = { leftValue: string; rightValue: string; operator: { singleValue?: true } }
interface Node {
  name: string
  type: string
  onError?: string
  parameters: {
    type: string
    encoding: 'hex'
    dataPropertyName: string
    conditions: { conditions: [Condition] }
    jsonBody: string
    options: { responseCode: number }
  }
}
type Flow = { nodes: Node[]; connections: Record<string, { main: { node: string }[][] }> }

const root = join(import.meta.dirname, '../..')
const { nodes, connections }: Flow = JSON.parse(readFileSync(join(root, 'docs/examples/n8n-leads.json'), 'utf8'))
const nodeOf = (name: string) => nodes.find((each) => each.name === name)!
/** Returns the nodes after an output of a node. */
const after = (name: string, output = 0) => connections[name]?.main[output]?.map(({ node }) => node) ?? []
/** Evaluates an expression of n8n: `={{ … }}`. */
const evaluate = (expression: string, $json: object) =>
  new Function('$json', `return (${expression.slice('={{'.length, -'}}'.length)})`)($json)

describe('the flow for n8n', () => {
  const secret = newSecret()

  /** Returns the names of the nodes that n8n would execute for a request, and what it would send to HubSpot. */
  function run(body: Uint8Array, headers: Record<string, string>, isTaken = true) {
    const path: string[] = []
    let $json: object = { headers, body: JSON.parse(Buffer.from(body).toString()) }
    let sent: unknown
    for (let name: string | undefined = 'Delivery'; name; ) {
      path.push(name)
      const { type, parameters }: Node = nodeOf(name)
      let output = 0
      if (type.endsWith('.crypto')) {
        const digest = createHmac(parameters.type, secret).update(body).digest(parameters.encoding)
        $json = { ...$json, [parameters.dataPropertyName]: digest }
      } else if (type.endsWith('.if')) {
        const [{ leftValue, rightValue, operator }] = parameters.conditions.conditions
        const right = operator.singleValue ? true : evaluate(rightValue, $json)
        output = evaluate(leftValue, $json) === right ? 0 : 1
      } else if (type.endsWith('.httpRequest')) {
        sent = JSON.parse(evaluate(parameters.jsonBody, $json))
        output = isTaken ? 0 : 1
      }
      ;[name] = after(name, output)
    }
    return { answer: nodeOf(path.at(-1)!).parameters.options.responseCode, sent }
  }

  function delivery(change: object = {}, signer = secret) {
    const event = { ...JSON.parse(sampleBody), data: { reference: 'lead_1', email: 'ada@example.com' }, ...change }
    const body = new TextEncoder().encode(JSON.stringify(event))
    const secrets = { active: signer, all: [signer] }
    return {
      body,
      headers: webhookHeaders({ deliveryId: 'dlv_1', correlationId: 'cor', body, secrets, at: Date.now() }),
    }
  }

  it('signs the raw body before any other node, and names only nodes that exist', () => {
    expect(nodeOf('Delivery').parameters).toMatchObject({ responseMode: 'responseNode', options: { rawBody: true } })
    expect(after('Delivery')).toEqual(['Sign the bytes'])
    expect(nodeOf('Sign the bytes').parameters).toMatchObject({
      action: 'hmac',
      binaryData: true,
      binaryPropertyName: 'data',
    })
    const reached = Object.values(connections).flatMap(({ main }) => main.flat().map(({ node }) => node))
    expect(reached.toSorted()).toEqual(
      nodes
        .map(({ name }) => name)
        .filter((name) => name !== 'Delivery')
        .toSorted(),
    )
    expect(nodeOf('Create or update the contact').onError).toBe('continueErrorOutput')
    expect(JSON.stringify(nodes)).not.toContain('whsec_')
  })

  it('accepts a signed delivery, and answers 503 if HubSpot does not take it', () => {
    const { body, headers } = delivery()
    const email = 'ada@example.com'
    const sent = { inputs: [{ idProperty: 'email', id: email, properties: { email } }] }
    expect(run(body, headers)).toEqual({ answer: 204, sent })
    expect(run(body, headers, false)).toEqual({ answer: 503, sent })
  })

  it('refuses wrong and missing signatures and changed bytes, and ignores tests and other events', () => {
    const { body, headers } = delivery()
    const { 'x-service-webhook-signature': _, ...unsigned } = headers
    const forged = delivery({}, newSecret())
    for (const other of [
      forged,
      { body: delivery().body, headers: unsigned },
      { ...delivery({ id: 'dlv_2' }), headers },
    ])
      expect(run(other.body, other.headers)).toEqual({ answer: 401, sent: undefined })
    expect(run(new Uint8Array([...body, 32]), headers).answer).toBe(401)
    for (const change of [{ test: true }, { eventType: 'lead.captured' }]) {
      const other = delivery(change)
      expect(run(other.body, other.headers)).toEqual({ answer: 204, sent: undefined })
    }
  })
})

it('the code step for Zapier returns the lead of a signed delivery, and refuses a wrong signature', () => {
  const secret = newSecret()
  const document = readFileSync(join(root, 'docs/crm.md'), 'utf8')
  const [, code] = /```js\n([\s\S]*?)```/.exec(document)!
  const step = new Function('inputData', 'require', `let output\n${code}\nreturn output`)
  const outputOf = (body: string, signer = secret) => {
    const signature = `sha256=${createHmac('sha256', signer).update(body).digest('hex')}`
    return step({ body, secret, signature }, createRequire(import.meta.url))
  }
  expect(outputOf(sampleBody)).toEqual([{ reference: 'lead_1', name: 'Zoë' }])
  expect(outputOf(JSON.stringify({ ...JSON.parse(sampleBody), test: true }))).toEqual([])
  expect(() => outputOf(sampleBody, newSecret())).toThrow('the signature is wrong')
})
