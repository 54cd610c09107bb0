import { describe, expect } from 'vitest'
import type { TestDatabase } from '../support/test-database.ts'
import { assertionFormRules, assertionRules } from './assertions.ts'
import { BASE } from './client.ts'
import { commandRules, commandStateRules } from './commands.ts'
import { connectionRules } from './connections.ts'
import { conversationRules } from './conversations.ts'
import { corsRules } from './cors.ts'
import { costRules } from './costs.ts'
import { deliveryRules } from './deliveries.ts'
import { ownerRules } from './delivery-owners.ts'
import { loadDocument } from './document-check.ts'
import { eventFeedRules } from './event-feed.ts'
import { eventHookRules } from './event-hooks.ts'
import { failureRules } from './failures.ts'
import { fourthEditionRules, limitRules } from './fourth-edition.ts'
import { growingAnswerRules } from './growing-answers.ts'
import { idempotencyRules } from './idempotency.ts'
import { identityRules } from './identity.ts'
import { interleavingRules } from './interleavings.ts'
import { lifetimeRules } from './lifetimes.ts'
import { pageContextRules } from './page-context.ts'
import { policyRules } from './policies.ts'
import { rateRules } from './rate-limits.ts'
import { ratingRules } from './ratings.ts'
import { rejectionRules } from './rejections.ts'
import { replayRules } from './replay.ts'
import { requestRules } from './requests.ts'
import { type RestartedStack, restartRules } from './restarts.ts'
import { routeRules } from './routes.ts'
import { rule } from './rule.ts'
import { sessionEndRules, sessionRules } from './sessions.ts'
import { slowReaderRules, streamRules } from './streams.ts'
import { subscriptionRules } from './subscriptions.ts'
import type { Suite } from './suite.ts'
import { unseenAnswerRules } from './unseen-answers.ts'
import { uploadRules } from './uploads.ts'
import { visitorPolicyRules } from './visitor-policies.ts'

/**
 * Registers the tests of all rules.
 *
 * @param database database of the stack `roomy`
 * @param restarted restarts parts of the stack `roomy`
 * @param minCodes the suite must have received more error codes than this
 */
export function allRules(
  suite: () => Suite,
  database: TestDatabase,
  restarted: () => RestartedStack,
  minCodes: number,
): void {
  describe('interleavings, lifetimes and deliveries', () => waitingRules(suite, database))
  quickRules(suite, database, restarted)
  responseRules(suite, minCodes)
}

/**
 * Registers the rules whose tests mostly wait or make many calls: lifetimes, retries of deliveries,
 * policies and limits. Tests of the rooms check them in `npm test`.
 */
export function waitingRules(suite: () => Suite, database: TestDatabase): void {
  interleavingRules(suite, { races: 4, runs: 10 })
  lifetimeRules(suite)
  deliveryRules(suite)
  ownerRules(suite, database)
  subscriptionRules(suite)
  eventFeedRules(suite)
  eventHookRules(suite)
  policyRules(suite)
  visitorPolicyRules(suite)
  uploadRules(suite, database)
  rateRules(suite)
  costRules(suite)
  commandStateRules(suite, database)
  assertionFormRules(suite)
  slowReaderRules(suite)
  unseenAnswerRules(suite)
  limitRules(suite)
}

/** Registers the rules that `waitingRules` and `responseRules` do not register. */
export function quickRules(suite: () => Suite, database: TestDatabase, restarted: () => RestartedStack): void {
  describe('all requests', () => {
    requestRules(suite)
    corsRules(suite)
  })
  describe('connections', () => connectionRules(suite))
  describe('sessions', () => {
    sessionRules(suite, database)
    sessionEndRules(suite)
  })
  describe('routes', () => routeRules(suite))
  describe('events', () => {
    replayRules(suite)
    streamRules(suite)
  })
  describe('identity, commands and conversations', () => {
    identityRules(suite)
    assertionRules(suite)
    rejectionRules(suite)
    commandRules(suite, database)
    pageContextRules(suite)
    conversationRules(suite)
    ratingRules(suite)
    growingAnswerRules(suite)
    fourthEditionRules(suite)
  })
  describe('idempotency', () => idempotencyRules(suite))
  describe('failures', () => failureRules(suite, database))
  describe('restarts', () => restartRules(restarted))
}

/**
 * Registers the rules that hold for every response. Their tests check all responses that the suite
 * has received, so they must be registered last.
 *
 * @param minCodes the suite must have received more error codes than this
 */
export function responseRules(suite: () => Suite, minCodes: number): void {
  describe('all responses in this suite', () => {
    const problems = (about: (problem: string) => boolean) =>
      suite().clients.flatMap(({ seen }) => seen.problems.filter(about))

    rule('S7.2', async () => {
      const codes = suite().clients.flatMap(({ seen }) => [...seen.codes])
      expect(new Set(codes).size).toBeGreaterThan(minCodes)
      expect(problems((problem) => problem.includes(': reveals '))).toEqual([])
    })
    rule('S9.1', async () => {
      // A response that violates the API document must be reported. Otherwise this rule proves nothing.
      const document = await loadDocument(suite().roomy.stack.gateways[0]!.url)
      const headers = new Headers({ 'content-type': 'application/json' })
      const envelope = { code: 'GrantMissing', retryable: false, terminal: false, correlationId: 'x' }
      const wrong = (status: number, body: object) =>
        document.problems('GET', `${BASE}/messages`, { status, headers, body })
      expect(wrong(401, envelope)).toEqual([])
      for (const [status, body] of [
        [401, { ...envelope, stack: 'at x' }],
        [401, { ...envelope, code: 'CommandExpired' }],
        [410, { ...envelope, code: 'CommandExpired' }],
        [200, { messages: [{}], hasMore: false, lastSequence: 1, oldestSequence: 1 }],
      ] as const)
        expect(wrong(status, body)).not.toEqual([])
      expect([...new Set(problems((problem) => !problem.includes(': reveals ')))]).toEqual([])
    })
  })
}
