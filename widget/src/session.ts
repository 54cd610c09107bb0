import type { Api } from './api.ts'
import { backoffDelay } from './backoff.ts'
import { sessionEndOf, toWidgetError, WidgetError } from './errors.ts'
import { grantTimes } from './grant-times.ts'
import { createPause } from './pause.ts'
import type { Platform, TimerId } from './platform.ts'
import type { SessionRecord, SessionRecords, StreamPosition } from './session-record.ts'
import type { PageContext, SessionContent, SessionEnd, WidgetErrorDetail } from './types.ts'

const retryRange = { minMs: 1_000, maxMs: 30_000 }

/** After these a reload must not begin anew by itself; the others end one session, not the visitor's right to chat. */
const lastingEnds: readonly SessionEnd[] = ['session.revoked', 'visitor.banned', 'connection.disabled']

export interface SessionDeps {
  api: Api
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  records: SessionRecords
  siteKey: string
  locale?: string
  pageContext?: () => PageContext | undefined
  /**
   * Nothing is retried any more. Called once. Without an event it is not a session that ended but the installation or
   * the page that is refused.
   */
  onEnd(event: SessionEnd | undefined, code: string): void
  /** Something failed that is retried, or that cannot be helped. */
  onError(error: WidgetErrorDetail): void
}

export type Session = ReturnType<typeof createSession>

/**
 * One visitor session: created or taken up again from the tab's storage, and renewed before its grant ends. Transient
 * failures of the renewal are retried with backoff for as long as the grant is good; terminal ones end the session
 * (section 3.2 of the specification).
 */
export function createSession(deps: SessionDeps) {
  const { api, records } = deps
  const { clock, random, newId, lifecycle } = deps.platform
  const pause = createPause(clock)
  let record: SessionRecord | undefined
  let ended = false
  let stopped = false
  let timer: TimerId
  let renewing: Promise<void> | undefined
  const unsubscribe = lifecycle.subscribe((signal) => {
    if (signal === 'online' || signal === 'visible' || signal === 'pageshow') pause.hurry()
    // Timers stand still while a laptop sleeps, so a page that comes back looks at the time itself.
    if (signal !== 'offline' && signal !== 'pagehide') scheduleRenewal()
  })

  return {
    /** Creates or resumes the session. Resolves to undefined when it ended, or was stopped, before it began. */
    async start(): Promise<{ content: SessionContent; resumed: boolean } | undefined> {
      record = records.read() ?? { clientInstanceId: newId() }
      if (record.ended) {
        finish(record.ended.event, record.ended.code)
        return undefined
      }
      const resumed = record.session !== undefined && clock.now() < (record.times?.expiresAtMs ?? 0)
      if (!resumed && !(await create())) return undefined
      scheduleRenewal()
      return { content: record.session!, resumed }
    },

    content: () => (ended || stopped ? undefined : record?.session),

    position: (): StreamPosition | undefined => record?.position,

    savePosition(position: StreamPosition) {
      if (!record || ended || stopped) return
      record = { ...record, position }
      records.write(record)
    },

    /**
     * Makes one call with the current grant. If the grant was replaced while the call was under way, and the old one was
     * refused, the call is made once more with the new one. An answer that ends the session ends it here.
     */
    async withGrant<Answer>(call: (grant: string) => Promise<Answer>): Promise<Answer> {
      const grant = record?.session?.accessGrant
      if (ended || stopped || !grant) throw new WidgetError('session_ended', { terminal: true })
      try {
        return await call(grant)
      } catch (error) {
        const failure = toWidgetError(error)
        if (failure.status !== 401) throw endIfTerminal(failure)
        await renewing?.catch(() => {})
        const renewed = record?.session?.accessGrant
        if (!failure.terminal || !renewed || renewed === grant || ended) throw endIfTerminal(failure)
        return await call(renewed).catch((again) => {
          throw endIfTerminal(toWidgetError(again))
        })
      }
    },

    end: finish,

    /** Stops timers and forgets nothing: a later page takes the session up again. */
    stop() {
      stopped = true
      unsubscribe()
      clock.clearTimeout(timer)
      pause.end()
    },
  }

  async function create(): Promise<boolean> {
    const { clientInstanceId } = record!
    const idempotencyKey = newId()
    const askedAtMs = clock.now()
    // The same input for each attempt: with another one the service would refuse the key.
    const input = {
      publicSiteKey: deps.siteKey,
      clientInstanceId,
      locale: deps.locale,
      pageContext: deps.pageContext?.(),
    }
    for (let attempt = 0; !stopped; attempt += 1) {
      try {
        accept(await api.createSession(input, idempotencyKey), askedAtMs)
        return !stopped
      } catch (error) {
        const failure = toWidgetError(error)
        deps.onError(failure.detail)
        if (!failure.retryable || failure.terminal) {
          finish(sessionEndOf(failure.code), failure.code)
          return false
        }
        await pause.wait(backoffDelay(attempt, retryRange, random), failure.retryAfterMs)
      }
    }
    return false
  }

  function accept(session: SessionContent, askedAtMs: number) {
    if (stopped) return
    record = { ...record!, session, times: grantTimes(session, askedAtMs) }
    records.write(record)
  }

  function scheduleRenewal() {
    clock.clearTimeout(timer)
    if (ended || stopped || renewing || !record?.times) return
    const { renewAtMs, expiresAtMs } = record.times
    // Up to a tenth late, so that the tabs of one visitor do not renew in the same instant.
    const dueInMs = renewAtMs - clock.now() + random() * 0.1 * Math.max(0, expiresAtMs - renewAtMs)
    timer = clock.setTimeout(
      () => {
        renewing = renew().finally(() => {
          renewing = undefined
          scheduleRenewal()
        })
      },
      Math.max(0, dueInMs),
    )
  }

  async function renew(): Promise<void> {
    const idempotencyKey = newId()
    const askedAtMs = clock.now()
    adoptFromOtherTab()
    if (record!.times!.renewAtMs > clock.now()) return
    const { session, times, position } = record!
    const { sessionId, renewalToken, accessGrant } = session!
    const input = { sessionId, renewalToken, lastSeenEventId: position?.lastEventId }
    for (let attempt = 0; !stopped && !ended; attempt += 1) {
      if (clock.now() >= times!.expiresAtMs) return finish('session.expired', 'SessionExpired')
      try {
        return accept(await api.renewSession(input, accessGrant, idempotencyKey), askedAtMs)
      } catch (error) {
        const failure = toWidgetError(error)
        if (stopped || ended || adoptFromOtherTab()) return
        deps.onError(failure.detail)
        if (!failure.retryable || failure.terminal) {
          return finish(sessionEndOf(failure.code) ?? 'session.expired', failure.code)
        }
        const leftMs = Math.max(0, times!.expiresAtMs - clock.now())
        const delayMs = Math.min(leftMs, backoffDelay(attempt, retryRange, random))
        await pause.wait(delayMs, Math.min(leftMs, failure.retryAfterMs ?? 0))
      }
    }
  }

  /** Where two pages share one storage, the other one may have renewed already: its grant is then ours as well. */
  function adoptFromOtherTab(): boolean {
    const stored = records.read()
    const isNewer = (stored?.times?.expiresAtMs ?? 0) > (record?.times?.expiresAtMs ?? 0)
    if (!isNewer || stored?.session?.sessionId !== record?.session?.sessionId) return false
    record = { ...record!, session: stored!.session, times: stored!.times }
    return true
  }

  function endIfTerminal(failure: WidgetError): WidgetError {
    const event = failure.terminal ? sessionEndOf(failure.code) : undefined
    if (event) finish(event, failure.code)
    return failure
  }

  function finish(event: SessionEnd | undefined, code: string) {
    if (ended || stopped) return
    ended = true
    clock.clearTimeout(timer)
    pause.end()
    const lasting = event !== undefined && lastingEnds.includes(event)
    if (lasting) records.write({ clientInstanceId: record!.clientInstanceId, ended: { event, code } })
    else records.clear()
    deps.onEnd(event, code)
  }
}
