import { toWidgetError, WidgetError } from './errors.ts'
import type { Emitter } from './events.ts'
import type { FeatureApi, UploadOptions } from './feature-api.ts'
import type { FeatureRecords } from './feature-record.ts'
import type { Grants } from './late-features.ts'
import { createPause, type Pause } from './pause.ts'
import type { Platform, TimerId } from './platform.ts'
import type { PresenceKeeper } from './presence.ts'
import { retrying } from './retrying.ts'
import type {
  Activity,
  AgentRequest,
  NavigationOutcome,
  ScreenshotConsent,
  StreamEvent,
  UploadedScreenshot,
  UploadTerms,
  WidgetConfig,
  WidgetEventMap,
} from './types.ts'

const attempts = 8
/** Reports after a decision (the page was reached) have no deadline at the service. */
const reportWithinMs = 120_000
const handledAtMost = 50

/** Which requests the application can show to a visitor and carry out. Others are answered with `unsupported`. */
export interface SupportedRequests {
  navigation: boolean
  screenshots: boolean
}

export interface AgentRequestsDeps {
  api: Pick<FeatureApi, 'acknowledgeNavigation' | 'acknowledgeScreenshot' | 'uploadScreenshot'>
  platform: Pick<Platform, 'clock' | 'random' | 'newId' | 'lifecycle'>
  emitter: Emitter<WidgetEventMap>
  records: FeatureRecords
  presence: Pick<PresenceKeeper, 'add'>
  supports: SupportedRequests
  /** How far this browser's clock is ahead of the service's, at most. Milliseconds. */
  aheadMs(): number
  config(): WidgetConfig | undefined
  grants: Grants
}

export type AgentRequests = ReturnType<typeof createAgentRequests>

/**
 * Requests of agents to the visitor's page, and the visitor's answers (section 3 of the contract). Each answer is one
 * idempotent operation, repeated while it may still count. Nothing is done to the page here.
 */
export function createAgentRequests(deps: AgentRequestsDeps) {
  const { api, emitter, records, presence, supports, aheadMs, config, grants } = deps
  const { clock, random, newId, lifecycle } = deps.platform
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
    takeEvent({ type, data }: StreamEvent) {
      if (type === 'navigation.requested') takeRequest('navigation', String(data.commandId), data)
      else if (type === 'screenshot.requested') takeRequest('screenshot', String(data.requestId), data)
      else if (type === 'navigation.cancelled') takeCancellation('navigation', String(data.commandId))
      else if (type === 'screenshot.cancelled') takeCancellation('screenshot', String(data.requestId))
    },

    /**
     * Reports the visitor's decision, then the result: `accepted` before the page is left, `completed` or `failed` after.
     * Rejects with a `WidgetError`, such as `CommandExpired` or `CommandAlreadyResolved`: the request is then over.
     */
    acknowledgeNavigation(commandId: string, outcome: NavigationOutcome): Promise<{ state: string }> {
      return once(`${commandId}.${outcome}`, async () => {
        const request = find(commandId, 'navigation')
        const isDecided = outcome === 'completed' || outcome === 'failed'
        const untilMs = isDecided ? clock.now() + reportWithinMs : request.expiresAtMs
        const answer = await attempt(request, untilMs, (grant) => api.acknowledgeNavigation(commandId, outcome, grant))
        if (outcome === 'accepted') replace(request, { ...request, state: 'accepted' })
        else end(request, `navigation.${outcome}`)
        return answer
      })
    },

    /** Reports the visitor's decision. After `granted`, the answer has the limits of the upload and its deadline. */
    acknowledgeScreenshot(
      requestId: string,
      consent: ScreenshotConsent,
    ): Promise<{ state: string; upload?: UploadTerms }> {
      return once(`${requestId}.${consent}`, async () => {
        const request = find(requestId, 'screenshot')
        const call = (grant: string) => api.acknowledgeScreenshot(requestId, consent, grant)
        const answer = await attempt(request, request.expiresAtMs, call)
        if (consent !== 'granted') end(request, `screenshot.${consent}`)
        else replace(request, { ...request, ...granted(request, answer.upload), state: 'granted' })
        return answer
      })
    },

    /**
     * Uploads a picture that the visitor consented to, in attempts with one key. Nothing of it is kept.
     * Rejects with a `WidgetError`: `aborted` if the signal or the end of the request stopped the upload.
     */
    async uploadScreenshot(
      requestId: string,
      image: Blob,
      { signal, ...options }: UploadOptions = {},
    ): Promise<UploadedScreenshot> {
      const request = find(requestId, 'screenshot')
      const key = uploadKeys.get(image) ?? newId()
      uploadKeys.set(image, key)
      const controller = new AbortController()
      uploads.set(requestId, controller)
      const stop = () => controller.abort()
      signal?.addEventListener('abort', stop, { once: true })
      if (signal?.aborted) stop()
      try {
        const answer = await attempt(request, request.expiresAtMs, async (grant) => {
          if (controller.signal.aborted) throw new WidgetError('aborted')
          return api
            .uploadScreenshot(requestId, image, grant, key, { ...options, signal: controller.signal })
            .catch((error) => {
              throw controller.signal.aborted ? new WidgetError('aborted') : error
            })
        })
        end(request, 'screenshot.uploaded')
        return answer
      } finally {
        signal?.removeEventListener('abort', stop)
        uploads.delete(requestId)
      }
    },

    /** Removes a request without reporting an outcome. */
    dismiss(id: string) {
      const request = records.current().requests.find((one) => one.id === id)
      if (request) end(request, undefined)
    },

    /** Restores the pending requests of the page before. */
    begin() {
      expire()
      if (records.current().requests.length > 0) tell()
    },

    stop() {
      clock.clearTimeout(timer)
      for (const pause of pauses) pause.end()
      for (const controller of uploads.values()) controller.abort()
    },
  }

  function takeRequest(kind: AgentRequest['kind'], id: string, data: StreamEvent['data']) {
    const { requests, handled } = records.current()
    if (handled.includes(id) || requests.some((one) => one.id === id)) return
    const text = (value: unknown) => (typeof value === 'string' && value.trim() !== '' ? value : undefined)
    const expiresAtMs = Date.parse(String(data.expiresAt)) + aheadMs()
    const request: AgentRequest = {
      id,
      kind,
      url: text(data.url),
      label: text(data.label),
      purpose: text(data.purpose),
      expiresAtMs: Number.isFinite(expiresAtMs) ? expiresAtMs : clock.now() + reportWithinMs,
      state: 'requested',
    }
    if (request.expiresAtMs <= clock.now()) return
    if (!isSupported(request)) return refuse(request)
    records.change({ requests: [...requests, request] })
    watch()
    if (kind === 'navigation') emitter.emit('navigation.requested', { request })
    else emitter.emit('screenshot.requested', { request })
    tell()
  }

  function takeCancellation(kind: AgentRequest['kind'], id: string) {
    const request = records.current().requests.find((one) => one.id === id)
    if (!request) return remember(id)
    end(request, `${kind}.cancelled`)
    if (kind === 'navigation') emitter.emit('navigation.cancelled', { commandId: id })
    else emitter.emit('screenshot.cancelled', { requestId: id })
  }

  function isSupported({ kind, url }: AgentRequest): boolean {
    const capability = kind === 'navigation' ? 'navigation' : 'screenshots'
    if (!supports[capability] || config()?.capabilities[capability] === false) return false
    return kind === 'screenshot' || (URL.canParse(url ?? '') && /^https?:$/.test(new URL(url!).protocol))
  }

  /** Sent by the package itself: the application cannot show the request. */
  function refuse(request: AgentRequest) {
    const call = (grant: string): Promise<unknown> =>
      request.kind === 'navigation'
        ? api.acknowledgeNavigation(request.id, 'unsupported', grant)
        : api.acknowledgeScreenshot(request.id, 'unsupported', grant)
    remember(request.id)
    attempt(request, request.expiresAtMs, call).catch(() => {})
  }

  function granted(request: AgentRequest, upload: UploadTerms | undefined): Partial<AgentRequest> {
    const untilMs = Date.parse(upload?.expiresAt ?? '') + aheadMs()
    return { upload, expiresAtMs: Number.isFinite(untilMs) ? untilMs : request.expiresAtMs }
  }

  /** The same answer given twice at once is one call. */
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
        isEnough: ({ retryAfterMs = 0 }, attempt) => attempt + 1 >= attempts || clock.now() + retryAfterMs >= untilMs,
      })
    } catch (error) {
      const failure = toWidgetError(error)
      const current = records.current().requests.find((one) => one.id === id)
      if (current && failure.code === 'CommandExpired') end(current, `${current.kind}.expired`)
      // Another tab has decided. Only one page reports what follows an accepted navigation.
      const isNews = current?.state !== 'accepted'
      if (current && failure.code === 'CommandAlreadyResolved') end(current, isNews ? 'request.resolved' : undefined)
      if (current && failure.code === 'CommandNotFound') end(current, undefined)
      throw failure
    } finally {
      pauses.delete(pause)
    }
  }

  function find(id: string, kind: AgentRequest['kind']): AgentRequest {
    const found = records.current().requests.find((one) => one.id === id && one.kind === kind)
    if (!found) throw new WidgetError('request_unknown')
    return found
  }

  function replace({ id }: AgentRequest, after: AgentRequest) {
    const { requests } = records.current()
    if (!requests.some((one) => one.id === id)) return
    records.change({ requests: requests.map((one) => (one.id === id ? after : one)) })
    watch()
    tell()
  }

  function end({ id }: AgentRequest, outcome: Activity['type'] | undefined) {
    const { requests } = records.current()
    // A late answer to a request that has ended, or to one of an earlier visitor.
    if (!requests.some((one) => one.id === id)) return
    records.change({ requests: requests.filter((one) => one.id !== id) })
    remember(id)
    uploads.get(id)?.abort()
    watch()
    if (outcome) presence.add(outcome)
    tell()
  }

  function remember(id: string) {
    const { handled } = records.current()
    records.change({ handled: [...handled.filter((one) => one !== id), id].slice(-handledAtMost) })
  }

  function watch() {
    clock.clearTimeout(timer)
    const waiting = records.current().requests.filter(({ state }) => state !== 'accepted')
    if (waiting.length === 0) return
    const nextMs = Math.min(...waiting.map(({ expiresAtMs }) => expiresAtMs))
    timer = clock.setTimeout(expire, Math.max(0, nextMs - clock.now()))
  }

  function expire() {
    for (const request of records.current().requests) {
      const isOver = request.state !== 'accepted' && request.expiresAtMs <= clock.now()
      if (isOver) end(request, `${request.kind}.expired`)
    }
    watch()
  }

  function tell() {
    emitter.emit('requests.changed', { requests: records.current().requests })
  }
}
