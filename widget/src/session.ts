import type { Api } from './api.ts'
import { isLastingEnd, toWidgetError, type WidgetError } from './errors.ts'
import { grantTimes } from './grant-times.ts'
import { createPause } from './pause.ts'
import type { Platform } from './platform.ts'
import type { Renewal } from './renewal.ts'
import { retrying } from './retrying.ts'
import type { SessionNotes, SessionRecord, SessionRecords } from './session-record.ts'
import type { PageContext, SessionContent, WidgetErrorDetail } from './types.ts'

/**
 * A session that the service returned. `askedAtMs` is the time at which the client requested the
 * session, in milliseconds of the browser's clock.
 */
export interface GivenSession {
  content: SessionContent
  askedAtMs: number
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
   * Called once, when the session ends or cannot be created. If an existing session ended, `code`
   * is the name of the event that ended it, for example `session.revoked`. Otherwise, no session
   * could be created, and `code` is the service's error code.
   */
  onEnd(code: string): void
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
  let renewal: Renewal | undefined
  let record: SessionRecord | undefined
  let over = false
  /**
   * True while the visitor's identity changes. If the session ends meanwhile, its end is handled
   * after the change.
   */
  let held = false
  let endAfterHold: string | undefined
  const unsubscribe = lifecycle.subscribe((signal) => renewal?.onLifecycle(signal))

  return {
    /**
     * Creates or resumes the session. Resolves to undefined if the session ends or is stopped
     * meanwhile.
     */
    async start(): Promise<SessionContent | undefined> {
      const loading = renewalCode()
      const stored = records.read()
      const clientInstanceId = stored?.clientInstanceId ?? newId()
      record = stored && !deps.given ? stored : { clientInstanceId }
      if (isLastingEnd(record.ended?.event)) finish(record.ended.event)
      else if (deps.given) accept(deps.given)
      else if (!record.session || clock.now() >= (record.times?.endsAtMs ?? record.times!.expiresAtMs)) {
        // The draft is kept only if the last session was anonymous. After a verified session,
        // another person may use the browser.
        if (isVerified()) {
          records.forgetSession(clientInstanceId)
          record = { clientInstanceId }
        }
        const { draft, ended } = record
        record = { clientInstanceId, draft, ended }
        await deps.configured
        // All attempts send the same input, because the service rejects an idempotency key that is
        // used with another input.
        const { siteKey: publicSiteKey, locale } = deps
        const input = { publicSiteKey, clientInstanceId, locale, pageContext: deps.pageContext() }
        if (!over) await obtain((key) => api.createSession(input, key))
      }
      // The grant of a stored session may have expired since the previous page was left. Renew it
      // if necessary.
      await loading
      await renewal?.schedule()
      return over ? undefined : record.session
    },

    content: () => (over ? undefined : record?.session),

    isVerified,

    notes: (): Readonly<SessionNotes> => record ?? {},

    remember(notes: SessionNotes) {
      if (record && !over) write({ ...record, ...notes })
    },

    withGrant,

    /** Call when the visitor acts. Starts a renewal if the grant has expired. */
    act: () => renewal?.act(),

    /** Resolves when the session has a valid grant or has ended. */
    ready: async () => (await renewalCode())?.ready(),

    /** Continues with the given session, for example after an identification. */
    accept,

    /** If the session ends, defers its end until `release` is called. */
    hold() {
      held = true
    },

    release() {
      held = false
      if (endAfterHold) finish(endAfterHold)
    },

    end: finish,

    /** Stops the timers. The stored session remains for the next page. */
    stop: leave,
  }

  function isVerified(): boolean {
    return record?.session?.identity.state === 'verified'
  }

  /**
   * Makes one call with a valid grant (see `withGrant` in `renewal.ts`). If the code of the renewal
   * cannot be loaded, makes the call with the current grant.
   */
  async function withGrant<Answer>(call: (grant: string) => Promise<Answer>): Promise<Answer> {
    const loaded = await renewalCode()
    return loaded ? loaded.withGrant(call) : call(record!.session!.accessGrant)
  }

  /**
   * Returns the renewal, whose code is imported on the first call. Resolves to undefined if the
   * import fails.
   */
  async function renewalCode(): Promise<Renewal | undefined> {
    try {
      const { createRenewal } = await import('./renewal.ts')
      renewal ??= createRenewal({
        platform: deps.platform,
        pause,
        record: () => (over ? undefined : record),
        remember: (pending) => write({ ...record!, renewal: pending }),
        call: api.renewSession,
        onRenewed: accept,
        onError: deps.onError,
        onEnd: finish,
      })
    } catch {}
    return renewal
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
      finish(code)
    }
  }

  function accept({ content, askedAtMs }: GivenSession) {
    if (over) return
    const before = record!.session
    const moved = before?.conversationId !== content.conversationId
    const start = moved && { readTo: content.replay.lastSequence, hiddenTo: 0, position: undefined }
    // A deferred end of the previous session does not end the new session.
    if (before?.sessionId !== content.sessionId) endAfterHold = undefined
    write({ ...record!, ...start, session: content, times: grantTimes(content, askedAtMs), renewal: undefined })
    renewal?.onGrant()
  }

  function write(changed: SessionRecord) {
    record = changed
    records.write(changed)
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
    renewal?.stop()
    pause.end()
  }
}
