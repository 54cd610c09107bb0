// Runs the samples in JSON of docs/integrating.md and docs/bots.md.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { useLocalStack } from '../support/local-stack.ts'

const docs = join(import.meta.dirname, '../../docs')

interface Sample {
  method: string
  request: string
  answer: string
}

/** A sample is a comment with the method, a request, and by choice `// answers` and an answer. */
const sampleAt = /^\/\/ (service\.[\w.]+\/\w+).*\n(\{.*\})(?:\n\/\/ answers\n(\{.*\}))?$/gm
const samplesOf = (name: string): Sample[] =>
  [...readFileSync(join(docs, name), 'utf8').matchAll(/```jsonc\n(.*?)```/gs)].flatMap(([, block = '']) =>
    [...block.matchAll(sampleAt)].map(([, method = '', request = '', answer = '{}']) => ({ method, request, answer })),
  )

/** Answers of all calls. An id of a request, such as `cnv_…`, is the first one of the latest answer that has one. */
const answers: string[] = []
const withIds = (request: string) =>
  request.replace(/\w+_(?=…)…/g, (id) => {
    const pattern = new RegExp(`\\b${id.slice(0, -1)}[\\w-]+`)
    return answers.findLast((answer) => pattern.test(answer))?.match(pattern)?.[0] ?? id
  })

/** Returns the part of an answer that a sample shows: fields of an object, the beginning of a list. */
function shownPartOf(answer: unknown, shown: unknown): unknown {
  if (Array.isArray(answer) && Array.isArray(shown)) return shown.map((each, index) => shownPartOf(answer[index], each))
  if (typeof answer !== 'object' || answer === null || typeof shown !== 'object' || shown === null) return answer
  const fields = answer as Record<string, unknown>
  return Object.fromEntries(Object.entries(shown).map(([name, each]) => [name, shownPartOf(fields[name], each)]))
}

/** Returns what a sample promises: the beginning of an id or a secret, any number and time, and all else as shown. */
function promiseOf(shown: string): unknown {
  return JSON.parse(shown, (_, value) => {
    if (typeof value === 'number') return expect.any(Number)
    if (typeof value !== 'string') return value
    if (value.endsWith('…')) return expect.stringMatching(`^${value.slice(0, -1)}.`)
    return /^\d{4}-\d\d-\d\dT/.test(value) ? expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) : value
  })
}

const tokenIn = (name: string) => readFileSync(join(stack.dataDir, name), 'utf8').trim()

/** Calls a method of the core, or as a bot through the gateway. */
async function call(method: string, request: string, token = stack.demo.serviceToken): Promise<unknown> {
  const isBot = token === tokenIn('bot.token')
  const response = await fetch(`${isBot ? `${stack.gateways[0]!.url}/rpc` : stack.cores[0]!.url}/${method}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    // An address, so that the test needs no name server.
    body: withIds(request).replace('crm.example', '93.184.216.34'),
  })
  const text = await response.text()
  expect(response.status, `${method} ${request} ${text}`).toBe(200)
  answers.push(text)
  return JSON.parse(text)
}

// A visitor writes.
const stack = useLocalStack()
beforeAll(async () => {
  const { origin, siteKey: publicSiteKey } = stack.demo
  const asGateway = (method: string, request: object) =>
    call(`service.${method}`, JSON.stringify(request), tokenIn('gateway.token'))
  const site = { publicSiteKey, origin, clientInstanceId: 'browser', idempotencyKey: 'session' }
  const created = await asGateway('session.v1.SessionService/CreateSession', site)
  const { accessGrant } = (created as { session: { accessGrant: string } }).session
  const credentials = { accessGrant, origin }
  const message = { credentials, clientOperationId: 'question', body: 'Do you ship to Graz?', contentType: 'text' }
  await asGateway('messaging.v1.MessagingService/SendVisitorMessages', { messages: [message] })
})

describe.each(['bots.md', 'integrating.md'])('the samples of docs/%s', (document) => {
  it.each(samplesOf(document))('are answered as shown: $method', async ({ method, request, answer }) => {
    const token = document === 'bots.md' ? tokenIn('bot.token') : undefined
    const shown = async () => shownPartOf(await call(method, request, token), JSON.parse(answer))
    // Searches and events come a moment after what caused them.
    if (/\/(Search|List)/.test(method)) await expect.poll(shown, { timeout: 10_000 }).toEqual(promiseOf(answer))
    else expect(await shown()).toEqual(promiseOf(answer))
  })
})
