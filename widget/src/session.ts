import type { Api } from './api.ts'
import { isLastingEnd, sessionEndOf, toWidgetError, WidgetError } from './errors.ts'
import { grantTimes } from './grant-times.ts'
import { createPause, type Pause } from './pause.ts'
import type { Platform, TimerId } from './platform.ts'
import { retrying } from './retrying.ts'
import type { SessionNotes, SessionRecord, SessionRecords } from './session-record.ts'
import type { PageContext, SessionContent, WidgetErrorDetail } from './types.ts'

/** A session from the service, and the browser's time of the request. */
export interface GivenSession {
  content: SessionContent
  askedAtMs: number
}

export interface SessionDeps {
  api: Api
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  records: SessionRecords
  siteKey: string
  locale?: string
  pageContext?: () => PageContext | undefined
  /** Begins with this session, and not with the stored one or a new one. */
  given?: GivenSession
  /**
   * Called once, at the end of the session. A code that is not the name of an event means that the
   * installation or the origin is refused.
   */
  onEnd(code: string): void
  /** A call failed. It may be retried. */
  onError(error: WidgetErrorDetail): void
}

export type Session = ReturnType<typeof createSession>

/**
 * One visitor session: created, or resumed from the tab's storage, and renewed before its grant expires. Transient
 * failures of the renewal are retried with backoff while the grant is valid; terminal ones end the session
 * (section 3.2 of the specification).
 */
export function createSession(deps: SessionDeps) {
  const { api, records } = deps
  const { clock, random, newId, lifecycle } = deps.platform
  const pause = createPause(clock)
  let record: SessionRecord | undefined
  let over = false
  let timer: TimerId
  let renewing: Promise<void> | undefined
  /** While the identity is changing, an end of this session is held back. */
  let held = false
  let endAfterHold: string | undefined
  const unsubscribe = lifecycle.subscribe((signal) => {
    if (signal === 'online' || signal === 'visible' || signal === 'pageshow') pause.hurry()
    // Timers stop while a laptop sleeps, so a resumed page compares the time.
    if (signal !== 'offline' && signal !== 'pagehide') scheduleRenewal()
  })

  return {
    /** Creates or resumes the session. Resolves to undefined when it ended, or was stopped, before it began. */
    async start(): Promise<SessionContent | undefined> {
      const stored = records.read()
      const clientInstanceId = stored?.clientInstanceId ?? newId()
      record = stored && !deps.given ? stored : { clientInstanceId }
      if (isLastingEnd(record.ended?.event)) finish(record.ended.event)
      else if (deps.given) accept(deps.given)
      else if (!record.session || clock.now() >= (record.times?.expiresAtMs ?? 0)) {
        // The draft stays, unless the session was verified: the next person may be another one.
        if (isVerified()) {
          records.forgetSession(clientInstanceId)
          record = { clientInstanceId }
        }
        const { draft, ended } = record
        record = { clientInstanceId, draft, ended }
        // Each attempt must send the same input, since the service refuses a key with another input.
        const { siteKey: publicSiteKey, locale } = deps
        const input = { publicSiteKey, clientInstanceId, locale, pageContext: deps.pageContext?.() }
        await obtain((key) => api.createSession(input, key), pause)
      }
      if (over) return undefined
      scheduleRenewal()
      return record.session
    },

    content: () => (over ? undefined : record?.session),

    isVerified,

    notes: (): Readonly<SessionNotes> => record ?? {},

    remember(notes: SessionNotes) {
      if (record && !over) write({ ...record, ...notes })
    },

    withGrant,

    /** Accepts the content from an identification: of this session or of its successor. */
    accept,

    /** Holds back the end of the session until `release`, while the identity is changing. */
    hold() {
      held = true
    },

    release() {
      held = false
      if (endAfterHold) finish(endAfterHold)
    },

    end: finish,

    /** Stops timers. The stored session stays, so that a later page resumes it. */
    stop: leave,
  }

  function isVerified(): boolean {
    return record?.session?.identity.state === 'verified'
  }

  /** @throws WidgetError `session_ended` */
  function grantNow(): string {
    const grant = record?.session?.accessGrant
    if (over || !grant) throw new WidgetError('session_ended', { terminal: true })
    return grant
  }

  /**
   * Makes one call with the current grant. If the grant was replaced during the call and the old one was refused, the call is
   * made again with the new one. An answer that ends the session ends it here.
   */
  async function withGrant<Answer>(call: (grant: string) => Promise<Answer>): Promise<Answer> {
    const grant = grantNow()
    try {
      return await call(grant)
    } catch (error) {
      const failure = toWidgetError(error)
      if (failure.terminal && failure.status === 401) {
        await renewing
        if (!over && grantNow() !== grant) return withGrant(call)
      }
      if (failure.terminal && sessionEndOf(failure.code)) finish(failure.code)
      throw failure
    }
  }

  /** Creates or renews the session. Retries transient failures; any other failure ends the session. */
  async function obtain(call: (key: string) => Promise<SessionContent>, between: Pick<Pause, 'wait'>) {
    const key = newId()
    const askedAtMs = clock.now()
    const isEnough = () => over
    const onRetry = ({ detail }: WidgetError) => deps.onError(detail)
    try {
      const content = await retrying(() => call(key), { pause: between, random, isEnough, onRetry })
      renewing = undefined
      accept({ content, askedAtMs })
    } catch (error) {
      if (over) return
      const { code, detail } = toWidgetError(error)
      deps.onError(detail)
      finish(sessionEndOf(code) || !record?.session ? code : 'session.expired')
    }
  }

  function accept({ content, askedAtMs }: GivenSession) {
    if (over) return
    const before = record!.session
    const moved = before?.conversationId !== content.conversationId
    const start = moved && { readTo: content.replay.lastSequence, hiddenTo: 0, position: undefined }
    // A held-back end of the former session does not end this one.
    if (before?.sessionId !== content.sessionId) endAfterHold = undefined
    write({ ...record!, ...start, session: content, times: grantTimes(content, askedAtMs) })
    scheduleRenewal()
  }

  function write(changed: SessionRecord) {
    record = changed
    records.write(changed)
  }

  function scheduleRenewal() {
    clock.clearTimeout(timer)
    if (over || renewing || !record?.times) return
    const { renewAtMs, expiresAtMs } = record.times
    // Up to a tenth late, so that the tabs of one visitor do not renew in the same instant.
    const dueInMs = renewAtMs - clock.now() + random() * 0.1 * Math.max(0, expiresAtMs - renewAtMs)
    timer = clock.setTimeout(
      () => {
        renewing ??= renew()
      },
      Math.max(0, dueInMs),
    )
  }

  function renew(): Promise<void> {
    const { session, times, position } = record!
    const { sessionId, renewalToken, accessGrant } = session!
    const leftMs = () => Math.max(0, times!.expiresAtMs - clock.now())
    const input = { sessionId, renewalToken, lastSeenEventId: position?.lastEventId }
    return obtain(
      async (key) => {
        if (leftMs() === 0) throw new WidgetError('session.expired', { terminal: true })
        return api.renewSession(input, accessGrant, key)
      },
      // No wait is longer than the grant is valid.
      { wait: (ms, notBeforeMs = 0) => pause.wait(Math.min(leftMs(), ms), Math.min(leftMs(), notBeforeMs)) },
    )
  }

  function finish(code: string) {
    if (over) return
    if (held) {
      endAfterHold = code
      return
    }
    leave()
    if (record) records.forgetSession(record.clientInstanceId, { event: code })
    deps.onEnd(code)
  }

  function leave() {
    over = true
    unsubscribe()
    clock.clearTimeout(timer)
    pause.end()
  }
}
