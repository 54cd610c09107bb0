import { createPause } from '../../../browser/pause.ts'
import type { Platform } from '../../../browser/platform.ts'
import { sessionEndOf, toWidgetError, type WidgetError } from '../client/errors.ts'
import type { PageContext, ReplayReset, SessionContent, WidgetErrorDetail } from '../client/types.ts'
import type { Api } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import { grantTimes } from './grant-times.ts'
import { createRenewal } from './renewal.ts'
import type { SessionNotes, SessionRecord, SessionRecords } from './session-record.ts'

/**
 * A session that the service returned. `askedAtMs` is the time at which the client requested the
 * session, in milliseconds of the browser's clock.
 */
export interface GivenSession {
  content: SessionContent
  askedAtMs: number
  /** Subject as which this session identified the visitor. */
  subject?: string
}

interface SessionDeps {
  api: Api
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  records: SessionRecords
  siteKey: string
  locale?: string
  pageContext: () => PageContext | undefined
  /**
   * Resolves when the configuration is loaded, or when the chat starts without it. `pageContext`
   * then returns a page only if the installation allows it.
   */
  configured: Promise<void>
  /** Session to use instead of a stored or new one. */
  given?: GivenSession
  /**
   * Called once, when the session ends, is refused or cannot be created. `code` is the name of the
   * event that ended the session, for example `session.revoked`, or the service's error code.
   * `isRefused` is true if the service has created no session. `about` has the further fields of the
   * event.
   */
  onEnd(code: string, isRefused: boolean, about?: ReplayReset): void
  /** Called when a request of the session fails. The request may be retried afterwards. */
  onError(error: WidgetErrorDetail): void
}

/**
 * Returns a function that makes calls with grants of the current session. If a later session
 * replaces the current one, the function does not use the later session's grants.
 */
export type Grants = () => <Answer>(call: (grant: string) => Promise<Answer>) => Promise<Answer>

export type Session = ReturnType<typeof createSession>

/**
 * One visitor session. The session is created or resumed from the tab's storage, and renewed.
 * Terminal failures end the session (section 3.2 of the specification).
 */
export function createSession(deps: SessionDeps) {
  const { api, records } = deps
  const { clock, random, newId, lifecycle } = deps.platform
  const pause = createPause(clock)
  let record: SessionRecord | undefined
  /** True if nothing is stored of an earlier session of this tab. */
  let isFirst = false
  let over = false
  /**
   * True while the visitor's identity changes. If the session ends meanwhile, its end is handled
   * after the change.
   */
  let held = false
  let endAfterHold: Parameters<typeof finish> | undefined
  const renewal = createRenewal({
    platform: deps.platform,
    pause,
    record: () => (over ? undefined : record),
    remember: (pending) => write({ ...record!, renewal: pending }),
    call: api.renewSession,
    onRenewed: accept,
    onError: deps.onError,
    onEnd: finish,
  })
  const unsubscribe = lifecycle.subscribe(renewal.onLifecycle)

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
      else if (end) finish(end, false, record.ended!.about)
      else if (!record.session) {
        await deps.configured
        // All attempts send the same input, because the service rejects an idempotency key that is
        // used with another input.
        const { siteKey: publicSiteKey, locale } = deps
        const input = { publicSiteKey, clientInstanceId, locale, pageContext: deps.pageContext() }
        if (!over) await obtain((key) => api.createSession(input, key))
      }
      if (!over) await renewal.resume()
      return over ? undefined : record.session
    },

    content: () => (over ? undefined : record?.session),

    /** Returns by how much the browser's clock is ahead of the service's, in milliseconds. */
    aheadMs: () =>
      record?.times && record.session ? record.times.expiresAtMs - Date.parse(record.session.expiresAt) : 0,

    isVerified,

    notes: (): Readonly<SessionNotes & Pick<SessionRecord, 'subject'>> => record ?? {},

    remember(notes: SessionNotes) {
      if (record && !over) write({ ...record, ...notes })
    },

    /** Makes one call with a valid grant. */
    withGrant: renewal.withGrant,

    /** Call when the visitor acts. Starts a renewal if the grant has expired. */
    act: renewal.act,

    /** Resolves when the session has a valid grant or has ended. */
    ready: renewal.ready,

    /** Continues with the given session, for example after an identification. */
    accept,

    /** If the session ends, defers its end until `release` is called. */
    hold() {
      held = true
    },

    release() {
      held = false
      if (endAfterHold) finish(...endAfterHold)
    },

    end: (code: string, about?: ReplayReset) => finish(code, false, about),

    /** Stops the timers. The stored session remains for the next page. */
    stop: leave,
  }

  function isVerified(): boolean {
    return record?.session?.identity?.state === 'verified'
  }

  /** Creates the session with `call`. Retries temporary failures. Any other failure ends the chat. */
  async function obtain(call: (key: string) => Promise<SessionContent>) {
    const key = newId()
    const askedAtMs = clock.now()
    const isEnough = () => over
    const onRetry = ({ detail }: WidgetError) => deps.onError(detail)
    try {
      const content = await retrying(() => call(key), { pause, random, isEnough, onRetry })
      accept({ content, askedAtMs })
    } catch (error) {
      if (over) return
      const { code, detail } = toWidgetError(error)
      deps.onError(detail)
      finish(code, true)
    }
  }

  function accept(given: GivenSession) {
    if (over) return
    const { content, askedAtMs } = given
    const before = record!.session
    const moved = before?.conversationId !== content.conversationId
    const start = moved && { readTo: content.replay.lastSequence, hiddenTo: 0, position: undefined }
    // A deferred end of the previous session does not end the new session.
    if (before?.sessionId !== content.sessionId) endAfterHold = undefined
    const subject = before?.sessionId === content.sessionId ? (given.subject ?? record!.subject) : given.subject
    const times = grantTimes(content, askedAtMs)
    write({ ...record!, ...start, session: content, times, subject, renewal: undefined })
    renewal.onGrant()
  }

  function write(changed: SessionRecord) {
    record = changed
    records.write(changed)
  }

  /**
   * Ends the session. Keeps an end by the service for the next page. After another failure, such as
   * a refused origin, the stored session remains, so that the next page can resume it. If the tab
   * never had a session, the next page tries again.
   */
  function finish(code: string, isRefused = false, about?: ReplayReset) {
    if (over) return
    if (held) {
      endAfterHold = [code, isRefused, about]
      return
    }
    leave()
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
    over = true
    unsubscribe()
    renewal.stop()
    pause.end()
  }
}
