import { beforeAll, describe, expect } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { eventRules } from './events.ts'
import { failureRules } from './failures.ts'
import { idempotencyRules } from './idempotency.ts'
import { interleavingRules } from './interleavings.ts'
import { rateRules } from './rate-limits.ts'
import { requestRules } from './requests.ts'
import { routeRules } from './routes.ts'
import { everyRuleIsTested, rule } from './rule.ts'
import { sessionEndRules, sessionRules } from './sessions.ts'
import { type Suite, startSuite } from './suite.ts'

const databases = [testDatabase(), testDatabase()] as const
let started: Suite
const suite = () => started

beforeAll(async () => {
  started = await startSuite([databases[0], databases[1]])
})

describe('every request', () => requestRules(suite))
describe('sessions', () => {
  sessionRules(suite, databases[0])
  sessionEndRules(suite)
})
describe('routes', () => routeRules(suite))
describe('events', () => eventRules(suite))
describe('the whole', () => interleavingRules(suite))
describe('rate limits', () => rateRules(suite))
describe('idempotency', () => idempotencyRules(suite))
describe('failures', () => failureRules(suite, databases[0]))

describe('every answer of the suite', () => {
  const problems = (about: (problem: string) => boolean) =>
    [started.roomy, started.short].flatMap(({ client }) => client.seen.problems.filter(about))

  rule('S7.2', async () => {
    expect(started.roomy.client.seen.codes.size).toBeGreaterThan(15)
    expect(problems((problem) => problem.includes(': shows '))).toEqual([])
  })
  rule('S9.1', async () => {
    expect([...new Set(problems((problem) => !problem.includes(': shows ')))]).toEqual([])
  })
})

describe('the rules', () => everyRuleIsTested())
