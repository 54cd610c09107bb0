import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { LifecycleSignal } from '../../../browser/platform.ts'
import { forAll, forAllAsync } from '../../../test/support/for-all.ts'
import { WidgetError } from '../vocabulary/errors.ts'
import type { SessionContent } from '../vocabulary/types.ts'
import { createSession } from './session.ts'
import { createSessionRecords } from './session-record.ts'
import { nextState, type SessionEvent, type SessionState } from './session-state.ts'

const failures = {
  network: () => new WidgetError('network_error', { retryable: true }),
  limited: () => new WidgetError('RateLimited', { retryable: true, status: 429, retryAfterMs: 30_000 }),
  revoked: () => new WidgetError('session.revoked', { terminal: true, status: 401 }),
  expired: () => new WidgetError('GrantExpired', { retryable: true, status: 401 }),
  invalid: () => new WidgetError('ValidationFailed', { status: 400 }),
}
const lives = [900_000, 60_000, 0, -5_000]

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ advance: fc.constantFrom(1_000, 60_000, 600_000, 1_000_000, 8_000_000) }) },
  { weight: 1, arbitrary: fc.record({ signal: fc.constantFrom<LifecycleSignal>('online', 'hidden', 'visible') }) },
  { weight: 3, arbitrary: fc.record({ answer: fc.constantFrom(...lives) }) },
  {
    weight: 2,
    arbitrary: fc.record({ fail: fc.constantFrom(...(Object.keys(failures) as (keyof typeof failures)[])) }),
  },
  { weight: 3, arbitrary: fc.constantFrom('call', 'ready', 'act', 'change', 'changed', 'end') },
)
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** Lets all callbacks of settled promises run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A page with one session, a service that answers when a step says so, and a clock. */
function startPage() {
  const stored = new Map<string, string>()
  const timers = new Map<number, { atMs: number; callback: () => void }>()
  const listeners = new Set<(signal: LifecycleSignal) => void>()
  const requests: { kind: 'create' | 'renew' | 'call'; grant?: string; settle(outcome: unknown): void }[] = []
  const ends: string[] = []
  const waits = { begun: 0, settled: 0 }
  let count = 0
  let nowMs = 1_700_000_000_000
  let changed: (() => void) | undefined

  const ask = (kind: 'create' | 'renew' | 'call', grant?: string) =>
    new Promise<never>((resolve, reject) =>
      requests.push({
        kind,
        grant,
        settle: (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome as never)),
      }),
    )
  const session = createSession({
    api: {
      createSession: () => ask('create'),
      renewSession: ({ accessGrant }: SessionContent) => ask('renew', accessGrant),
    } as never,
    platform: {
      random: () => 0.5,
      newId: () => `id-${++count}`,
      clock: {
        now: () => nowMs,
        setTimeout(callback, ms) {
          timers.set(++count, { atMs: nowMs + ms, callback })
          return count
        },
        clearTimeout: (timer) => timers.delete(timer as number),
      },
      lifecycle: {
        isOnline: () => true,
        subscribe(listener) {
          listeners.add(listener)
          return () => listeners.delete(listener)
        },
      },
    },
    records: createSessionRecords(
      {
        getItem: (key: string) => stored.get(key) ?? null,
        setItem: (key: string, value: string) => stored.set(key, value),
        removeItem: (key: string) => stored.delete(key),
      } as never,
      'pk',
    ),
    siteKey: 'pk',
    pageContext: () => undefined,
    configured: Promise.resolve(),
    onEnd: (code) => ends.push(code),
    onError() {},
  })
  void session.start()

  function content(lifeMs: number): SessionContent {
    const at = (ms: number) => new Date(nowMs + ms).toISOString()
    return {
      sessionId: 's1',
      conversationId: 'c1',
      accessGrant: `h.${btoa(JSON.stringify({ iat: nowMs / 1_000, grant: ++count }))}.s`,
      renewalToken: `r-${count}`,
      expiresAt: at(lifeMs),
      renewAfter: at(lifeMs * 0.6),
      renewableUntil: at(7_200_000),
      replay: { state: 'ready', epoch: 'e', lastSequence: 0, oldestSequence: 0 },
      continuity: { state: 'new' },
      identity: { state: 'anonymous' },
    }
  }

  return {
    session,
    requests,
    timers,
    ends,
    waits,
    nowMs: () => nowMs,
    async run(step: Step) {
      if (step === 'call' || step === 'ready') {
        waits.begun += 1
        const wait = step === 'ready' ? session.ready() : session.withGrant((grant) => ask('call', grant))
        wait.catch(() => {}).finally(() => (waits.settled += 1))
      } else if (step === 'act') session.act()
      else if (step === 'end' && session.content()) session.end('session.closed')
      else if (step === 'change' && !changed && session.content()) {
        void session.whileChanging(() => new Promise<void>((resolve) => (changed = resolve)))
      } else if (step === 'changed') {
        changed?.()
        changed = undefined
      } else if (typeof step === 'object' && 'advance' in step) {
        nowMs += step.advance
        for (const [id, { atMs, callback }] of [...timers]) if (atMs <= nowMs && timers.delete(id)) callback()
      } else if (typeof step === 'object' && 'signal' in step)
        for (const listener of [...listeners]) listener(step.signal)
      else if (typeof step === 'object') {
        const request = requests.shift()
        request?.settle('fail' in step ? failures[step.fail]() : request.kind === 'call' ? {} : content(step.answer))
      }
      await settle()
    },
  }
}

it('whatever happens in whatever order, a session ends once, renews one grant at a time, and sends no expired grant', async () => {
  await forAllAsync([fc.array(step, { maxLength: 40 })], { numRuns: 150 }, async (steps) => {
    const page = startPage()
    await settle()
    for (const each of [...steps, 'changed' as const]) {
      const known = new Set(page.requests)
      await page.run(each)
      const { session, requests, ends, timers } = page
      expect(requests.filter(({ kind }) => kind !== 'call').length).toBeLessThanOrEqual(1)
      for (const { kind, grant } of requests.filter((request) => !known.has(request) && request.kind !== 'create')) {
        if (kind === 'call') expect(Date.parse(session.content()!.expiresAt)).toBeGreaterThan(page.nowMs())
        if (session.content()) expect(grant).toBe(session.content()!.accessGrant)
      }
      expect(ends.length).toBeLessThanOrEqual(1)
      if (!ends[0]) continue
      expect(session.content()).toBeUndefined()
      expect(timers.size).toBe(0)
      const isNew = (request: (typeof requests)[number]) => !known.has(request) && request.kind !== 'call'
      expect(requests.some(isNew)).toBe(false)
    }
    page.session.stop()
    await settle()
    while (page.requests[0]) await page.run({ fail: 'revoked' })
    expect(page.waits.settled).toBe(page.waits.begun)
  })
})

it('an expired grant that was tried is renewed again only after an act, and an ended session stays ended', () => {
  const events: SessionEvent[] = ['create', 'resume', 'granted', 'granted-expired', 'expire', 'try', 'act', 'end']
  forAll([fc.array(fc.constantFrom(...events))], {}, (sequence) => {
    let state: SessionState = { name: 'none' }
    for (const event of sequence) {
      const before = state.name
      state = nextState(state, event)
      if (before === 'ended') expect(state.name).toBe('ended')
      if (before === 'expired-tried' && state.name === 'expired-untried' && event !== 'granted-expired')
        expect(event).toBe('act')
      if (before.startsWith('expired') && state.name === 'live') expect(event).toBe('granted')
    }
  })
})
