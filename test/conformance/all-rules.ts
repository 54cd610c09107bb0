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
  waitingRules(suite, database)
  quickRules(suite, database)
  restartRules(restarted)
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

/** Registers the rules that no other function here registers. */
export function quickRules(suite: () => Suite, database: TestDatabase): void {
  requestRules(suite)
  corsRules(suite)
  connectionRules(suite)
  sessionRules(suite, database)
  sessionEndRules(suite)
  routeRules(suite)
  replayRules(suite)
  streamRules(suite)
  identityRules(suite)
  assertionRules(suite)
  rejectionRules(suite)
  commandRules(suite, database)
  pageContextRules(suite)
  conversationRules(suite)
  ratingRules(suite)
  growingAnswerRules(suite)
  fourthEditionRules(suite)
  idempotencyRules(suite)
  failureRules(suite, database)
}

/** Quick rules that `npm run test:long` tests, because `npm test` checks them in the named tests of rooms. */
const rulesOfRooms = {
  'core/commands/commands': ['C3.27'],
  'core/consents/page-context': ['C3.38'],
  'core/conversations/assignments': ['C4.33'],
  'core/conversations/growing-messages': ['C8.35', 'C8.38', 'C8.39'],
  'core/conversations/message-states': ['C4.31'],
  'core/deliveries/delivery-sources': ['C8.23', 'C8.23.kept', 'C8.23.erasure'],
  'core/deliveries/redactions': ['C8.30.author'],
  'core/deliveries/subscriptions': ['C8.44'],
  'core/feed/feed': ['C8.26'],
  'core/identity/identification': ['C3.26', 'C3.34', 'C4.18'],
  'core/identity/identity-assertions': ['C7.11'],
  'core/identity/identity-change': ['C2.10', 'C3.25', 'C3.53'],
  'core/operators/accounts': ['C8.32'],
  'core/sessions/session-check': ['C3.37'],
  'delivery/sender': ['C8.25'],
  'gateway/http/ended-connections': ['C1.62'],
  'gateway/http/paths': ['C1.22'],
  'gateway/http/pipelining': ['C1.61'],
}
const inRooms = new Set(Object.values(rulesOfRooms).flat())
export const isOfRoom = (id: string): boolean => inRooms.has(id)

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
