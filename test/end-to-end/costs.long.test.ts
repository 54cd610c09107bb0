import { beforeAll, describe, expect, it } from 'vitest'
import { memoryOf } from '../support/memory.ts'
import { type Stack, startStack } from '../support/stack.ts'
import type { Answer, Visitor } from '../support/visitor.ts'
import { type Bystanders, type Sample, startBystanders, timeQuantile } from './bystanders.ts'
import {
  type DearRequest,
  LARGE,
  MESSAGES,
  operatorCallers,
  operatorRequests,
  serviceRequests,
  visitorRequests,
} from './expensive-requests.ts'

const SESSIONS = 10
/** Bound of docs/operating.md for what such load adds to a gateway or a core. */
const GROWTH_MAX_MIB = 350
/** Number of the bystanders' sends that are measured before, during and after the load each. */
const SENDS = 40
/**
 * Maximum time of a bystander's send, in milliseconds: no send waits for the whole load. Client, gateway, core,
 * engine and other tests share the processors, so the printed times are comparable within a run only.
 */
const SEND_MAX_MS = 5_000

let stack: Stack
let attackers: (Visitor & { siteKey: string })[]
let bystanders: Bystanders
let memory: Record<string, number>
/** The bystanders' sends without load, measured after the previous case. */
let before: Sample[]

beforeAll(async () => {
  stack = await startStack({
    env: { RATE_LIMIT_REFUSALS_PER_MINUTE: '1000000', RATE_LIMIT_SESSIONS_PER_MINUTE: '1000', LOG_LEVEL: 'warn' },
  })
  const { siteKey } = stack.demo
  attackers = []
  for (let index = 0; index < SESSIONS; index++) attackers.push(Object.assign(await stack.newVisitor(), { siteKey }))
  const { messaging } = stack.operator()
  for (const { session } of attackers)
    for (let index = 0; index < MESSAGES; index++)
      await messaging.sendAgentMessage({
        conversationId: session.conversationId,
        clientOperationId: `large-${index}`,
        body: LARGE,
      })
  bystanders = await startBystanders(stack)
  await bystanders.measure(SENDS)
  before = await bystanders.measure(SENDS)
  memory = await memoryOf(stack)
}, 300_000)

/** Stands for a request whose connection was refused: an address has too many. */
const connectionRefused = (): Answer => ({ status: 0, headers: new Headers(), body: undefined })

/** Makes the requests at once, again and again, until enough sends of bystanders were measured. */
async function attack(requests: (() => Promise<Answer>)[]) {
  const answers: Answer[] = []
  const peak: Record<string, number> = {}
  let isOver = false
  const load = async () => {
    do answers.push(...(await Promise.all(requests.map((request) => request().catch(connectionRefused)))))
    while (!isOver)
  }
  const watchMemory = async () => {
    do for (const [name, now] of Object.entries(await memoryOf(stack))) peak[name] = Math.max(peak[name] ?? 0, now)
    while (!isOver)
  }
  const loads = [load(), watchMemory()]
  const first = await bystanders.measure(SENDS)
  isOver = true
  // The last round takes some time, and also delays sends.
  const last = await bystanders.measure(1, Promise.all(loads))
  return { answers, peak, samples: [...first, ...last] }
}

const statusesOf = (samples: Sample[]) => new Set(samples.map(({ kind, status }) => `${kind} ${status}`))
const times = (samples: Sample[], kind: Sample['kind']) =>
  [0.5, 0.95, 0.99, 1].map((share) => Math.round(timeQuantile(samples, kind, share))).join('/')

async function expectOthersUnharmed(name: string, requests: (() => Promise<Answer>)[], mayRefuse: boolean) {
  const { answers, peak, samples } = await attack(requests)
  const after = await bystanders.measure(SENDS)
  const quiet = [...before, ...after]
  before = after
  const count = (status: number) => answers.filter((answer) => answer.status === status).length
  const good = answers.filter(({ status }) => status >= 200 && status < 300).length
  const refused = count(connectionRefused().status)
  console.info(
    `${name} × ${requests.length}: ${good} answered, ${count(429)} × 429, ${count(503)} × 503, ${refused} connections refused; ` +
      `${samples.length} samples, sends ${times(samples, 'send')} ms, quiet ${times(quiet, 'send')} ms; ` +
      `readiness ${times(samples, 'ready')} ms; machine × ${timeQuantile(quiet, 'slowness', 0.5).toFixed(1)}; peak ${JSON.stringify(peak)} MiB, quiet ${JSON.stringify(memory)}`,
  )
  expect(statusesOf([...samples, ...quiet])).toEqual(new Set(['send 202', 'ready 200', 'slowness 200']))
  expect(timeQuantile(samples, 'send', 0.95)).toBeLessThan(SEND_MAX_MS)
  // Load of an earlier case may have used the rate limit of a session.
  expect(good + count(429) + count(503) + refused).toBe(answers.length)
  if (!mayRefuse) expect(refused).toBe(0)
  for (const [part, held] of Object.entries(memory)) expect(peak[part]! - held, part).toBeLessThan(GROWTH_MAX_MIB)
  return answers
}

describe.each([
  ['one session', 1],
  ['ten sessions of one address', SESSIONS],
])('the most expensive requests of %s', (_, sessions) => {
  it.each(visitorRequests)(
    '%s are answered or refused with Retry-After, and nothing else stops',
    async (name, times, request) => {
      const requests = attackers
        .slice(0, sessions)
        .flatMap((visitor) => Array.from({ length: times }, () => () => request(visitor)))
      // An address may have 500 connections.
      const answers = await expectOthersUnharmed(name, requests, sessions > 1)
      for (const { status, headers } of answers)
        if (status >= 400) expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    },
  )
})

const callers = ['an operator at a gateway', 'a service at a core'] as const
const operatorCases = callers.flatMap((caller) =>
  [...operatorRequests, ...(caller === 'a service at a core' ? serviceRequests : [])].flatMap((request) =>
    [1, SESSIONS].map((factor) => ({ caller, request, factor })),
  ),
)

describe('the most expensive reads of operators and services', () => {
  it.each(
    operatorCases.map(({ caller, request: [name, times], factor }, index) => [times * factor, name, caller, index]),
  )('%i × %s of %s are answered or refused, and nothing else stops', async (_times, _name, _caller, index) => {
    const { caller, request, factor } = operatorCases[index as number]!
    const [name, times, call] = request as DearRequest<ReturnType<typeof operatorCallers>[string]>
    const made = operatorCallers(stack, attackers[0]!.session)[caller]!
    const requests = Array.from({ length: times * factor }, () => () => call(made))
    await expectOthersUnharmed(`${name} of ${caller}`, requests, caller === callers[0])
  })
})
