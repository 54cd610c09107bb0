import { createPause, type Pause } from '../../../browser/pause.ts'
import type { Platform, TimerId } from '../../../browser/platform.ts'
import type { RequestParts } from '../transport/api.ts'
import { retrying } from '../transport/retrying.ts'
import { toWidgetError, WidgetError } from '../vocabulary/errors.ts'
import type { AcknowledgedScreenshot } from '../vocabulary/gen/wire.ts'
import type {
  Activity,
  AgentRequest,
  NavigationOutcome,
  ScreenshotConsent,
  StreamEvent,
  UploadedScreenshot,
} from '../vocabulary/types.ts'
import type { PartsWithPresence } from './presence.ts'

const attempts = 8
/** Maximum time for reports of a finished navigation, for which the service sets no deadline. */
const reportWithinMs = 120_000
const handledAtMost = 50

export interface UploadOptions {
  /** Gets the sent share, from 0 to 1, if the platform can measure it. */
  onProgress?: (share: number) => void
  signal?: AbortSignal
  /** Returns a `fetch` that reports progress. Ignored if the platform has its own `upload`. */
  upload?: Platform['upload']
}

/**
 * Receives navigation and screenshot requests of agents. Reports the visitor's answers (section 3
 * of the contract). Each answer is one idempotent operation and is retried until its deadline. This
 * module never navigates and takes no screenshots, because that is the application's task. Requests that
 * have not ended are stored, so that the visitor's next page continues with them. Those that the visitor does
 * not answer in time expire.
 */
export function createAgentRequests(parts: PartsWithPresence) {
  const { api, emitter, records, presence, supports, aheadMs, config, grants } = parts
  const { clock, random, newId, lifecycle } = parts.platform
  const answers = new Map<string, Promise<unknown>>()
  const pauses = new Set<Pause>()
  const uploadKeys = new WeakMap<Blob, string>()
  const uploads = new Map<string, AbortController>()
  let timer: TimerId
  lifecycle.subscribe((signal) => {
    if (signal === 'online') for (const pause of pauses) pause.hurry()
    if (signal === 'visible' || signal === 'pageshow') expire()
  })

  return {
    handleEvent({ type, data }: StreamEvent) {
      if (type === 'navigation.requested') addRequest('navigation', String(data.commandId), data)
      else if (type === 'screenshot.requested') addRequest('screenshot', String(data.requestId), data)
      else if (type === 'navigation.cancelled') cancelRequest('navigation', String(data.commandId))
      else if (type === 'screenshot.cancelled') cancelRequest('screenshot', String(data.requestId))
    },

    /**
     * Reports the visitor's decision and, after `accepted`, the result of the navigation. Call with
     * `accepted` before the page navigates, and with `completed` or `failed` afterwards. Rejects
     * with a `WidgetError` such as `CommandExpired` or `CommandAlreadyResolved` if the agent's
     * request has ended.
     */
    acknowledgeNavigation(commandId: string, outcome: NavigationOutcome): Promise<{ state: string }> {
      return once(`${commandId}.${outcome}`, async () => {
        const request = find(commandId, 'navigation')
        const isDecided = outcome === 'completed' || outcome === 'failed'
        const answer = await acknowledge(request, outcome, isDecided ? clock.now() + reportWithinMs : undefined)
        if (outcome === 'accepted') change(request, { state: 'accepted' })
        else end(request, `navigation.${outcome}`)
        return answer
      })
    },

    /** Reports the decision. After `granted`, the answer has the limits and the deadline of the upload. */
    acknowledgeScreenshot(requestId: string, consent: ScreenshotConsent): Promise<AcknowledgedScreenshot> {
      return once(`${requestId}.${consent}`, async () => {
        const request = find(requestId, 'screenshot')
        const answer = await acknowledge(request, consent)
        if (consent !== 'granted') end(request, `screenshot.${consent}`)
        else {
          const { upload } = answer
          change(request, { upload, expiresAtMs: timeOf(upload?.expiresAt, request.expiresAtMs), state: 'granted' })
        }
        return answer
      })
    },

    /**
     * Uploads the screenshot that the visitor allowed. All attempts for one `image` use one
     * idempotency key. Rejects with the `WidgetError` `aborted` if `signal` is aborted or the
     * agent's request ends.
     */
    async uploadScreenshot(
      requestId: string,
      image: Blob,
      { signal, onProgress, upload }: UploadOptions = {},
    ): Promise<UploadedScreenshot> {
      const request = find(requestId, 'screenshot')
      const key = uploadKeys.get(image) ?? newId()
      uploadKeys.set(image, key)
      const controller = new AbortController()
      uploads.set(requestId, controller)
      const stop = () => controller.abort()
      signal?.addEventListener('abort', stop, { once: true })
      if (signal?.aborted) stop()
      const sent: RequestParts = {
        method: 'POST',
        path: `${pathOf(request)}/upload`,
        headers: { 'Content-Type': image.type },
        raw: image,
        idempotencyKey: key,
        signal: controller.signal,
      }
      try {
        const answer = await attempt(request, request.expiresAtMs, async (grant) => {
          try {
            controller.signal.throwIfAborted()
            const response = await api.exchange({ ...sent, grant }, (parts.platform.upload ?? upload)?.(onProgress))
            return (await response.json()) as UploadedScreenshot
          } catch (error) {
            if (controller.signal.aborted) throw new WidgetError('aborted')
            throw error instanceof WidgetError ? error : new WidgetError('unexpected_response', { retryable: true })
          }
        })
        end(request, 'screenshot.uploaded')
        return answer
      } finally {
        signal?.removeEventListener('abort', stop)
        uploads.delete(requestId)
      }
    },

    /** Removes an agent's request without reporting an outcome. */
    dismiss(id: string) {
      const request = pendingOf(id)
      if (request) end(request)
    },

    /** Restores the agents' requests that were pending when the previous page was left. */
    begin() {
      expire()
      if (all().length > 0) emitChange()
    },

    stop() {
      clock.clearTimeout(timer)
      for (const pause of pauses) pause.end()
      for (const controller of uploads.values()) controller.abort()
    },
  }

  function addRequest(kind: AgentRequest['kind'], id: string, data: StreamEvent['data']) {
    // Pending, or handled earlier.
    if (records.current().handled.includes(id) || pendingOf(id)) return
    const text = (value: unknown) => (typeof value === 'string' && value.trim() !== '' ? value : undefined)
    const request: AgentRequest = {
      id,
      kind,
      url: text(data.url),
      label: text(data.label),
      purpose: text(data.purpose),
      expiresAtMs: timeOf(data.expiresAt, clock.now() + reportWithinMs),
      state: 'requested',
    }
    if (request.expiresAtMs <= clock.now()) return
    if (!isSupported(request)) {
      markHandled(id)
      return void acknowledge(request, 'unsupported').catch(() => {})
    }
    records.change({ requests: [...all(), request] })
    scheduleExpiry()
    emitter.emit(`${kind}.requested`, { request })
    emitChange()
  }

  function cancelRequest(kind: AgentRequest['kind'], id: string) {
    const request = pendingOf(id)
    if (!request) return markHandled(id)
    end(request, `${kind}.cancelled`)
    if (kind === 'navigation') emitter.emit('navigation.cancelled', { commandId: id })
    else emitter.emit('screenshot.cancelled', { requestId: id })
  }

  function isSupported({ kind, url }: AgentRequest) {
    const capability = kind === 'navigation' ? 'navigation' : 'screenshots'
    if (!supports?.[capability] || config()?.capabilities[capability] === false) return false
    return kind === 'screenshot' || (URL.canParse(url ?? '') && /^https?:$/.test(new URL(url!).protocol))
  }

  function pathOf({ kind, id }: AgentRequest) {
    return `/commands/${kind === 'navigation' ? kind : 'screenshots'}/${encodeURIComponent(id)}`
  }

  /** The key is made of the request's id and the answer, so that repeats of several tabs are one operation. */
  function acknowledge(request: AgentRequest, answer: string, untilMs = request.expiresAtMs) {
    const body = { [request.kind === 'navigation' ? 'outcome' : 'consent']: answer }
    const [path, key] = [`${pathOf(request)}/acknowledgements`, `${request.id}.${answer}`]
    return attempt(request, untilMs, (grant) => api.post<AcknowledgedScreenshot>(path, 'state', body, key, grant))
  }

  /** Returns a time of the service in milliseconds of the browser's clock. */
  function timeOf(text: unknown, otherwiseMs: number) {
    const timeMs = Date.parse(String(text)) + aheadMs()
    return Number.isFinite(timeMs) ? timeMs : otherwiseMs
  }

  /** Calls with the same key share one request. */
  function once<Answer>(key: string, run: () => Promise<Answer>): Promise<Answer> {
    const under = (answers.get(key) as Promise<Answer> | undefined) ?? run().finally(() => answers.delete(key))
    answers.set(key, under)
    return under
  }

  async function attempt<Answer>(
    { id }: AgentRequest,
    untilMs: number,
    call: (grant: string) => Promise<Answer>,
  ): Promise<Answer> {
    const withGrant = grants()
    const pause = createPause(clock)
    pauses.add(pause)
    try {
      return await retrying(() => withGrant(call), {
        pause,
        random,
        attempts,
        isEnough: ({ retryAfterMs = 0 }) => clock.now() + retryAfterMs >= untilMs,
      })
    } catch (error) {
      const failure = toWidgetError(error)
      const current = pendingOf(id)
      if (current && failure.code === 'CommandExpired') end(current, `${current.kind}.expired`)
      // Answered in another tab. After `accepted`, the page that navigates adds an activity itself.
      const outcome = current?.state === 'accepted' ? undefined : 'request.resolved'
      if (current && failure.code === 'CommandAlreadyResolved') end(current, outcome)
      if (current && /^(CommandNotFound|RouteNotAdvertised)$/.test(failure.code)) end(current)
      throw failure
    } finally {
      pauses.delete(pause)
    }
  }

  function find(id: string, kind: AgentRequest['kind']): AgentRequest {
    const found = pendingOf(id)
    if (found?.kind !== kind) throw new WidgetError('request_unknown')
    return found
  }

  function all() {
    return records.current().requests
  }

  function pendingOf(id: string) {
    return all().find((one) => one.id === id)
  }

  /** Changes a request. Does nothing if the request has ended. */
  function change({ id }: AgentRequest, changes: Partial<AgentRequest>) {
    if (!pendingOf(id)) return
    records.change({ requests: all().map((one) => (one.id === id ? { ...one, ...changes } : one)) })
    scheduleExpiry()
    emitChange()
  }

  /** Removes a request and adds the activity `outcome`, if given. */
  function end({ id }: AgentRequest, outcome?: Activity['type']) {
    // The request may have ended already, or belong to an earlier visitor.
    if (!pendingOf(id)) return
    records.change({ requests: all().filter((one) => one.id !== id) })
    markHandled(id)
    uploads.get(id)?.abort()
    scheduleExpiry()
    if (outcome) presence.add(outcome)
    emitChange()
  }

  /** Records that the request was handled, so that a repeated event does not show it again. */
  function markHandled(id: string) {
    const { handled } = records.current()
    records.change({ handled: [...handled.filter((one) => one !== id), id].slice(-handledAtMost) })
  }

  function scheduleExpiry() {
    clock.clearTimeout(timer)
    const unanswered = all().filter(({ state }) => state !== 'accepted')
    if (unanswered.length === 0) return
    const nextMs = Math.min(...unanswered.map(({ expiresAtMs }) => expiresAtMs))
    timer = clock.setTimeout(expire, Math.max(0, nextMs - clock.now()))
  }

  function expire() {
    for (const request of all()) {
      const isExpired = request.state !== 'accepted' && request.expiresAtMs <= clock.now()
      if (isExpired) end(request, `${request.kind}.expired`)
    }
    scheduleExpiry()
  }

  function emitChange() {
    emitter.emit('requests.changed', { requests: all() })
  }
}
