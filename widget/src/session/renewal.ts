import { longestWaitMs, type Pause } from '../../../browser/pause.ts'
import type { LifecycleSignal, Platform, TimerId } from '../../../browser/platform.ts'
import { sessionEndOf, toWidgetError, WidgetError } from '../client/errors.ts'
import type { SessionContent, WidgetErrorDetail } from '../client/types.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import type { SessionRecord } from './session-record.ts'
import { isWhole } from './whole-record.ts'

export type Renewal = ReturnType<typeof createRenewal>

interface RenewalDeps {
  platform: Pick<Platform, 'clock' | 'random' | 'newId'>
  /** Pause between attempts. The attempts to create the session use the same pause. */
  pause: Pick<Pause, 'wait' | 'hurry'>
  /** Returns the session's record, or undefined if the session has ended. */
  record(): SessionRecord | undefined
  /** Stores a renewal, so that it can be repeated after a reload. */
  remember(pending: SessionRecord['renewal']): void
  call: Api['renewSession']
  onRenewed(given: { content: SessionContent; askedAtMs: number }): void
  /** Called when an attempt fails. */
  onError(error: WidgetErrorDetail): void
  /** Called when the session can no longer be renewed. */
  onEnd(code: string): void
}

/**
 * Renews the grant of a session before it expires. Retries temporary failures until the grant
 * expires. An expired grant can still be renewed for some hours, for example when the computer
 * wakes up (section 2 of the contract). The client tries to renew an expired grant once when the
 * first request needs a grant. It tries again each time the page becomes visible, the network
 * returns or the visitor acts.
 */
export function createRenewal(deps: RenewalDeps) {
  const { clock, random, newId } = deps.platform
  let timer: TimerId
  let renewing: Promise<void> | undefined
  /**
   * True after an attempt. An expired grant is then not renewed until the page becomes visible, the
   * network returns or the visitor acts.
   */
  let isTried = false
  /** Number of renewals in a row that returned a grant that had already expired. */
  let expiredGrants = 0
  let notBeforeMs = 0
  /** Grant that the service has rejected as expired. */
  let refused: string | undefined
  let waiting: (() => void)[] = []

  return {
    /**
     * Renews a stored session if its grant has expired. Ends the session if it can no longer be
     * renewed or if its record is damaged.
     */
    resume: () => (isWhole(deps.record()!) ? schedule() : deps.onEnd('session.expired')),

    act,

    onLifecycle(signal: LifecycleSignal) {
      if (/online|visible|pageshow/.test(signal)) {
        isTried = false
        deps.pause.hurry()
      }
      // Timers stop while the computer sleeps, so schedule the renewal again from the current time.
      if (!/offline|pagehide/.test(signal)) schedule()
    },

    /**
     * Makes a call with a valid grant. The call counts as an action of the visitor, so an expired
     * grant is renewed. Await `ready` before calls that the visitor does not cause.
     */
    withGrant<Answer>(call: (grant: string) => Promise<Answer>): Promise<Answer> {
      act()
      return withGrant(call)
    },

    /** Resolves when the session has a valid grant or has ended. */
    ready: () => validGrant().catch(() => {}),

    /** Call when the session has received a new grant. */
    onGrant() {
      expiredGrants = isExpired() ? expiredGrants + 1 : 0
      // A repeated renewal may return a grant that has expired during a sleep. Renew such a grant
      // at once, but do so only once in a row.
      isTried = expiredGrants > 1
      schedule()
      wake()
    },

    stop() {
      clock.clearTimeout(timer)
      wake()
    },
  }

  /**
   * Makes one call with a valid grant. If the grant has expired, waits until it is renewed. If the
   * service rejects the grant because it has expired or was renewed meanwhile, repeats the call
   * once with the new grant. Ends the session if the response says that it has ended.
   */
  async function withGrant<Answer>(call: (grant: string) => Promise<Answer>, isRepeated = false): Promise<Answer> {
    const grant = await validGrant()
    try {
      return await call(grant)
    } catch (error) {
      const failure = toWidgetError(error)
      const { code, status, terminal } = failure
      if (code === 'GrantExpired') {
        refused = grant
        if (!isRepeated) return withGrant(call, true)
        // The service rejects a new grant too, so the caller must back off.
        throw new WidgetError(code, { status, retryable: true })
      }
      if (terminal && status === 401 && !isRepeated) {
        await renewing
        const now = deps.record()?.session?.accessGrant
        if (now && now !== grant) return withGrant(call, true)
      }
      if (terminal) {
        if (!sessionEndOf(code)) deps.onError(failure.detail)
        deps.onEnd(code)
      }
      throw failure
    }
  }

  /**
   * Returns the current grant. If the grant has expired, waits until it is renewed.
   *
   * @throws WidgetError `session_ended`
   */
  async function validGrant(): Promise<string> {
    for (;;) {
      const grant = deps.record()?.session?.accessGrant
      if (!grant) throw new WidgetError('session_ended', { terminal: true })
      if (!isExpired()) return grant
      schedule()
      if (deps.record()) await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }

  /** Call when the visitor acts. Starts a renewal if the grant has expired. */
  function act() {
    isTried = false
    if (isExpired()) schedule()
  }

  function wake() {
    const woken = waiting
    waiting = []
    for (const resume of woken) resume()
  }

  function isExpired(): boolean {
    const { session, times } = deps.record() ?? {}
    return !!times && (clock.now() >= times.expiresAtMs || session?.accessGrant === refused)
  }

  /** Starts the renewal if it is due, or schedules it. Resolves when a started renewal has ended. */
  function schedule(): Promise<void> | undefined {
    clock.clearTimeout(timer)
    const record = deps.record()
    if (renewing || !record?.times) return renewing
    const { renewAtMs, expiresAtMs, endsAtMs } = record.times
    const nowMs = clock.now()
    if (nowMs >= endsAtMs) deps.onEnd('session.expired')
    else if (!isExpired()) {
      // Add a random delay of up to a tenth of the time until expiry. So tabs of one visitor do not
      // renew at the same time.
      const jitterMs = random() * 0.1 * Math.max(0, expiresAtMs - renewAtMs)
      wait(Math.max(renewAtMs + jitterMs, notBeforeMs), () => void (isExpired() ? schedule() : start()))
    } else if (isTried) wait(endsAtMs, schedule)
    else if (nowMs < notBeforeMs) wait(Math.min(notBeforeMs, endsAtMs), schedule)
    else return start()
    return undefined
  }

  function wait(untilMs: number, callback: () => void) {
    timer = clock.setTimeout(callback, Math.max(0, untilMs - clock.now()))
  }

  function start(): Promise<void> {
    renewing ??= renew(deps.record()!)
    return renewing
  }

  async function renew({ session, times, position, renewal }: SessionRecord) {
    const { accessGrant } = session!
    // If the response to an earlier renewal was lost, repeat that renewal with the same key and
    // input. The service then sends the same response, because it accepts the old token for a
    // limited time.
    const pending = renewal ?? { key: newId(), lastSeenEventId: position?.lastEventId, askedAtMs: clock.now() }
    deps.remember(pending)
    const { key, lastSeenEventId, askedAtMs } = pending
    const leftMs = () => (isExpired() ? 0 : times!.expiresAtMs - clock.now())
    const isReplaced = () => deps.record()?.session?.accessGrant !== accessGrant
    function attempt() {
      isTried = true
      return deps.call(session!, key, lastSeenEventId)
    }
    try {
      const content = await retrying(attempt, {
        // Ends each wait when the grant expires.
        pause: {
          wait: (ms, longMs = 0) => deps.pause.wait(Math.min(leftMs(), ms), Math.min(leftMs(), longMs)),
        },
        random,
        isEnough: () => isReplaced() || leftMs() <= 0,
        onRetry: ({ detail }) => deps.onError(detail),
      })
      renewing = undefined
      if (isReplaced()) schedule()
      else deps.onRenewed({ content, askedAtMs })
    } catch (error) {
      renewing = undefined
      if (isReplaced()) return void schedule()
      const { code, detail, retryable, terminal, retryAfterMs = 0 } = toWidgetError(error)
      deps.onError(detail)
      notBeforeMs = clock.now() + Math.min(longestWaitMs, retryAfterMs)
      if (terminal) return deps.onEnd(code)
      // Another attempt with the same input would be refused, too. The grant remains valid.
      if (!retryable) {
        deps.remember(undefined)
        notBeforeMs = times!.expiresAtMs
      }
      schedule()
    }
  }
}
