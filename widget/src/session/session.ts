import { createPause, longestWaitMs } from '../../../browser/pause.ts'
import { isReturn, type LifecycleSignal, type Platform, type TimerId } from '../../../browser/platform.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import { sessionEndOf, toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { ErrorCode, PageContext, ReplayReset, SessionContent, WidgetErrorDetail } from '../vocabulary/types.ts'
import { grantTimes, isWhole, type SessionNotes, type SessionRecord, type SessionRecords } from './session-record.ts'
import { nextState, type SessionEvent, type SessionState } from './session-state.ts'

/** `askedAtMs` is when the client requested the session, in milliseconds of the browser's clock. */
export interface GivenSession {
  content: SessionContent
  askedAtMs: number
  /** Subject as which this session identified the visitor. */
  subject?: string
}

export interface SessionDeps {
  api: Api
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  records: SessionRecords
  siteKey: string
  locale?: string
  pageContext: () => PageContext | undefined
  /** Resolves when the configuration is loaded, or when the chat starts without it. */
  configured: Promise<void>
  /** Session to use instead of a stored or new one. */
  given?: GivenSession
  /**
   * Called once, when the session ends, is refused or cannot be created. `code` is the name of the
   * event that ended the session, for example `session.revoked`, or the service's error code.
   * `isRefused` is true if the service has created no session. `about` has the further fields of the
   * event.
   */
  onEnd(code: ErrorCode, isRefused: boolean, about?: ReplayReset): void
  /** Called when a request of the session fails. The request may be retried afterwards. */
  onError(error: WidgetErrorDetail): void
}

/** Returns a function that makes calls with grants of the current session, and of no later one. */
export type Grants = () => <Answer>(call: (grant: string) => Promise<Answer>) => Promise<Answer>

export type Session = ReturnType<typeof createSession>

/**
 * One visitor session. The session is created or resumed from the tab's storage. Its grant is renewed before
 * it expires; temporary failures are retried until it expires. An expired grant can still be renewed for some
 * hours, for example when the computer wakes up (section 2 of the contract). Terminal failures end the session
 * (section 3.2 of the specification).
 */
export function createSession(deps: SessionDeps) {
  const { api, records } = deps
  const { clock, random, newId, lifecycle } = deps.platform
  const pause = createPause(clock)
  let state: SessionState = { name: 'none' }
  let record: SessionRecord | undefined
  /** True if nothing is stored of an earlier session of this tab. */
  let isFirst = false
  /** A change of the visitor's identity that is under way, and the end of the session that it defers. */
  let change: { end?: [code: ErrorCode, about?: ReplayReset] } | undefined
  let timer: TimerId
  let renewing: Promise<void> | undefined
  let notBeforeMs = 0
  let waiting: (() => void)[] = []
  const unsubscribe = lifecycle.subscribe(onLifecycle)

  return {
    /**
     * Creates or resumes the session. A stored session that has ended is not replaced: its end is
     * reported. Resolves to undefined if the session has ended or is stopped meanwhile.
     */
    async start(): Promise<SessionContent | undefined> {
      const stored = records.read()
      isFirst = !stored
      const clientInstanceId = stored?.clientInstanceId ?? newId()
      record = stored && !deps.given ? stored : { clientInstanceId }
      const end = sessionEndOf(record.ended?.event)
      if (deps.given) accept(deps.given)
      else if (end) finish(end, record.ended!.about)
      else if (record.session) dispatch('resume')
      else {
        dispatch('create')
        await deps.configured
        // All attempts send the same input, as the idempotency key requires.
        const { siteKey: publicSiteKey, locale } = deps
        const input = { publicSiteKey, clientInstanceId, locale, pageContext: deps.pageContext() }
        if (now() === 'creating') await create((key) => api.createSession(input, key))
      }
      if (now() !== 'ended') await (isWhole(record) ? schedule() : finish('session.expired'))
      return content()
    },

    content,

    /** Returns by how much the browser's clock is ahead of the service's, in milliseconds. */
    aheadMs: () =>
      record?.times && record.session ? record.times.expiresAtMs - Date.parse(record.session.expiresAt) : 0,

    isVerified,

    notes: (): Readonly<SessionNotes & Pick<SessionRecord, 'subject'>> => record ?? {},

    remember(notes: SessionNotes) {
      if (record && now() !== 'ended') write({ ...record, ...notes })
    },

    /** Makes a call that counts as an action of the visitor, so it renews an expired grant. */
    withGrant<Answer>(call: (grant: string) => Promise<Answer>): Promise<Answer> {
      act()
      return withGrant(call)
    },

    act,

    /** Resolves when the session has a valid grant or has ended. Never rejects. */
    ready: () => validGrant().catch(() => {}),

    /** Continues with the given session, for example after an identification. */
    accept,

    /** Changes the visitor's identity. If the session ends meanwhile, its end is handled after the change. */
    async whileChanging<Result>(run: () => Promise<Result>): Promise<Result> {
      change = {}
      try {
        return await run()
      } finally {
        const { end } = change
        change = undefined
        if (end) finish(...end)
      }
    },

    end: finish,

    /** Stops the timers. The stored session remains for the next page. */
    stop: leave,
  }

  function dispatch(event: SessionEvent) {
    state = nextState(state, event)
  }

  function now(): SessionState['name'] {
    // A damaged record has no times.
    const { expiresAtMs = 0 } = record?.times ?? {}
    if (state.name === 'live' && clock.now() >= expiresAtMs) dispatch('expire')
    return state.name
  }

  function content(): SessionContent | undefined {
    return now() === 'ended' ? undefined : record?.session
  }

  function isVerified() {
    return record?.session?.identity?.state === 'verified'
  }

  /** Creates the session. Retries temporary failures. Any other failure ends the chat. */
  async function create(call: (key: string) => Promise<SessionContent>) {
    const key = newId()
    const askedAtMs = clock.now()
    const isEnough = () => now() === 'ended'
    const onRetry = ({ detail }: WidgetError) => deps.onError(detail)
    try {
      const content = await retrying(() => call(key), { pause, random, isEnough, onRetry })
      accept({ content, askedAtMs })
    } catch (error) {
      if (now() === 'ended') return
      const { code, detail } = toWidgetError(error)
      deps.onError(detail)
      finish(code)
    }
  }

  function accept(given: GivenSession) {
    if (now() === 'ended') return
    const { content, askedAtMs } = given
    const before = record!.session
    const moved = before?.conversationId !== content.conversationId
    const start = moved && { readTo: content.replay.lastSequence, hiddenTo: 0, position: undefined }
    const isOther = before?.sessionId !== content.sessionId
    // A deferred end of the previous session does not end the new session.
    if (isOther && change) change.end = undefined
    const subject = isOther ? given.subject : (given.subject ?? record!.subject)
    const times = grantTimes(content, askedAtMs)
    write({ ...record!, ...start, session: content, times, subject, renewal: undefined })
    dispatch(clock.now() >= times.expiresAtMs ? 'granted-expired' : 'granted')
    void schedule()
    wake()
  }

  function write(changed: SessionRecord) {
    record = changed
    records.write(changed)
  }

  /**
   * Makes one call with a valid grant. If the grant has expired, waits until it is renewed. If the
   * service rejects the grant because it has expired or was renewed meanwhile, repeats the call
   * once with the new grant. Ends the session if the response says that it has ended.
   */
  async function withGrant<Answer>(call: (grant: string) => Promise<Answer>, isRepeated = false): Promise<Answer> {
    const grant = await validGrant()
    const hasOther = () => ![undefined, grant].includes(content()?.accessGrant)
    try {
      return await call(grant)
    } catch (error) {
      const failure = toWidgetError(error)
      const { code, status, terminal } = failure
      if (code === 'GrantExpired') {
        if (!hasOther()) dispatch('expire')
        if (!isRepeated) return withGrant(call, true)
        // The service rejects a new grant too, so the caller must back off.
        throw new WidgetError(code, { status, retryable: true })
      }
      if (terminal && status === 401 && !isRepeated) {
        await renewing
        if (hasOther()) return withGrant(call, true)
      }
      if (terminal) {
        if (!sessionEndOf(code)) deps.onError(failure.detail)
        finish(code)
      }
      throw failure
    }
  }

  /**
   * Returns the current grant. If the grant has expired, waits until it is renewed.
   *
   * @throws WidgetError `session_ended`
   */
  async function validGrant() {
    for (;;) {
      const grant = content()?.accessGrant
      if (!grant) throw new WidgetError('session_ended', { terminal: true })
      if (now() === 'live') return grant
      void schedule()
      if (content()) await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }

  /** Call when the visitor acts. Starts a renewal if the grant has expired. */
  function act() {
    dispatch('act')
    if (now() === 'expired-untried') void schedule()
  }

  function onLifecycle(signal: LifecycleSignal) {
    if (isReturn(signal)) {
      dispatch('act')
      pause.hurry()
    }
    // Timers stop while the computer sleeps, so schedule the renewal again from the current time.
    if (signal !== 'offline' && signal !== 'pagehide') void schedule()
  }

  function wake() {
    const woken = waiting
    waiting = []
    for (const resume of woken) resume()
  }

  /** Starts the renewal if it is due, or schedules it. Resolves when a started renewal has ended. */
  function schedule() {
    clock.clearTimeout(timer)
    const name = now()
    if (renewing || name === 'none' || name === 'creating' || name === 'ended') return renewing
    const { renewAtMs, expiresAtMs, endsAtMs } = record!.times!
    const nowMs = clock.now()
    if (nowMs >= endsAtMs) finish('session.expired')
    else if (name === 'live') {
      // So tabs of one visitor do not renew at the same time.
      const jitterMs = random() * 0.1 * Math.max(0, expiresAtMs - renewAtMs)
      wait(Math.max(renewAtMs + jitterMs, notBeforeMs), () => (now() === 'live' ? renewOnce() : schedule()))
    } else if (name === 'expired-tried') wait(endsAtMs, schedule)
    else if (nowMs < notBeforeMs) wait(Math.min(notBeforeMs, endsAtMs), schedule)
    else return renewOnce()
    return undefined
  }

  function wait(untilMs: number, callback: () => void) {
    timer = clock.setTimeout(callback, Math.max(0, untilMs - clock.now()))
  }

  function renewOnce() {
    renewing ??= renew(record!)
    return renewing
  }

  async function renew({ session, times, position, renewal }: SessionRecord) {
    // If the response to an earlier renewal was lost, repeat that renewal with the same key and
    // input. The service then sends the same response, because it accepts the old token for a
    // limited time.
    const pending = renewal ?? { key: newId(), lastSeenEventId: position?.lastEventId, askedAtMs: clock.now() }
    write({ ...record!, renewal: pending })
    const { key, lastSeenEventId, askedAtMs } = pending
    const leftMs = () => (now() === 'live' ? times!.expiresAtMs - clock.now() : 0)
    const isReplaced = () => content()?.accessGrant !== session!.accessGrant
    function attempt() {
      dispatch('try')
      return api.renewSession(session!, key, lastSeenEventId)
    }
    try {
      const content = await retrying(attempt, {
        // Ends each wait when the grant expires.
        pause: { wait: (ms, longMs = 0) => pause.wait(Math.min(leftMs(), ms), Math.min(leftMs(), longMs)) },
        random,
        isEnough: () => isReplaced() || leftMs() <= 0,
        onRetry: ({ detail }) => deps.onError(detail),
      })
      renewing = undefined
      if (isReplaced()) void schedule()
      else accept({ content, askedAtMs })
    } catch (error) {
      renewing = undefined
      if (isReplaced()) return void schedule()
      const { code, detail, retryable, terminal, retryAfterMs = 0 } = toWidgetError(error)
      deps.onError(detail)
      notBeforeMs = clock.now() + Math.min(longestWaitMs, retryAfterMs)
      if (terminal) return finish(code)
      // Another attempt with the same input would be refused, too. The grant remains valid.
      if (!retryable) {
        write({ ...record!, renewal: undefined })
        notBeforeMs = times!.expiresAtMs
      }
      void schedule()
    }
  }

  /**
   * Ends the session. Keeps an end by the service for the next page. After another failure, such as
   * a refused origin, the stored session remains, so that the next page can resume it. If the tab
   * never had a session, the next page tries again.
   */
  function finish(code: ErrorCode, about?: ReplayReset) {
    const name = now()
    if (name === 'ended') return
    if (change) {
      change.end = [code, about]
      return
    }
    leave()
    const isRefused = name === 'creating'
    const event = sessionEndOf(code)
    if (event && record && !(isRefused && isFirst)) {
      const { clientInstanceId, draft } = record
      // After a verified session, another person may use the browser.
      if (isVerified()) records.forget({ clientInstanceId, ended: { event, about } })
      else records.write({ clientInstanceId, draft, ended: { event, about } })
    }
    deps.onEnd(code, isRefused, about)
  }

  function leave() {
    dispatch('end')
    unsubscribe()
    clock.clearTimeout(timer)
    wake()
    pause.end()
  }
}
