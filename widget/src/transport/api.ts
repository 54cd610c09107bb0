import { longestWaitMs } from '../../../browser/pause.ts'
import { newRandomId, type Platform } from '../../../browser/platform.ts'
import { packageCode, WidgetError } from '../vocabulary/errors.ts'
import type { AcceptedMessage, ErrorEnvelope, HistoryPage, MessageInput } from '../vocabulary/gen/wire.ts'
import type { LeftSession, PageContext, SessionContent, StreamPosition, WidgetConfig } from '../vocabulary/types.ts'

/** Base path of every route of the Widget API (section 9 of the specification). */
export const WIDGET_PUBLIC_API_PREFIX = '/api/integrations/v1/widget'

/** Contract version, sent as `X-Service-Widget-Version`. */
export const WIDGET_PUBLIC_API_VERSION = '1.0'

const requestTimeoutMs = 15_000

export interface RequestParts {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  body?: object
  grant?: string
  idempotencyKey?: string
  headers?: Record<string, string>
  signal?: AbortSignal
  cache?: RequestCache
  /** Sent instead of `body`. Its content type stands in `headers`. */
  raw?: Blob
  /** A field that every successful answer has. An answer without it is not from the service. */
  field?: string
}

/** A page after `afterSequence` or before `beforeSequence`. */
export type HistoryRange = Record<'limit', number> &
  (Record<'afterSequence', number> | Record<'beforeSequence', number>)

export type Api = ReturnType<typeof createApi>

/**
 * The routes of the Widget API that every chat uses (section 4.1 of the specification). Each call
 * makes one attempt and rejects with a `WidgetError`; callers decide on retries. Credentials are
 * only in headers and bodies, never in URLs.
 *
 * A proxy or a captive portal may respond instead of the service. It is then unknown whether the
 * service has executed the call. So the call rejects with a retryable `unexpected_response`,
 * whatever the HTTP status.
 */
export function createApi({ apiBaseUrl, fetch, clock }: Pick<Platform, 'fetch' | 'clock'> & { apiBaseUrl: string }) {
  const base = apiBaseUrl.replace(/\/+$/, '') + WIDGET_PUBLIC_API_PREFIX

  const post = <Answer>(path: string, field: string, body: object, idempotencyKey: string, grant?: string) =>
    call<Answer>({ method: 'POST', path, field, body, idempotencyKey, grant })
  const report = (path: string, body: object, grant: string) => call<void>({ method: 'POST', path, body, grant })

  return {
    /** Makes one attempt and parses the answer. Resolves to undefined for the status 204. */
    call,
    post,

    /** Reports something that has no answer and no key. */
    report,

    /** Sends one request without a timeout. Rejects if the status is not 2xx. */
    exchange,

    config: (siteKey: string, cache?: RequestCache) =>
      call<WidgetConfig>({
        method: 'GET',
        path: `/config/${encodeURIComponent(siteKey)}`,
        field: 'capabilities',
        cache,
      }),

    createSession: (
      input: { publicSiteKey: string; clientInstanceId: string; locale?: string; pageContext?: PageContext },
      idempotencyKey: string,
    ) => post<SessionContent>('/sessions', 'accessGrant', input, idempotencyKey),

    /** Renews the session with its grant, which may have expired. */
    renewSession: (
      { sessionId, renewalToken, accessGrant }: LeftSession,
      idempotencyKey: string,
      lastSeenEventId?: string,
    ) =>
      post<SessionContent>(
        '/sessions/renew',
        'accessGrant',
        { sessionId, renewalToken, lastSeenEventId },
        idempotencyKey,
        accessGrant,
      ),

    sendMessage: (input: MessageInput, grant: string) =>
      post<AcceptedMessage>('/messages', 'messageId', input, input.clientOperationId, grant),

    stopAnswer: (messageId: string, idempotencyKey: string, grant: string) =>
      call<void>({ method: 'POST', path: `/messages/${messageId}/stop`, field: 'state', idempotencyKey, grant }),

    history: (range: HistoryRange, grant: string) =>
      call<HistoryPage>({ method: 'GET', path: `/messages?${query(range)}`, field: 'messages', grant }),

    /** Resolves when the status and headers of a successful answer have arrived. */
    async events({ sequence, lastEventId }: StreamPosition, grant: string, signal: AbortSignal): Promise<Response> {
      const headers = { Accept: 'text/event-stream', ...(lastEventId && { 'Last-Event-ID': lastEventId }) }
      const response = await exchange({
        method: 'GET',
        path: `/events?${query({ afterSequence: sequence })}`,
        grant,
        headers,
        signal,
      })
      const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream')
      if (isStream && response.body) return response
      void response.body?.cancel().catch(() => {})
      throw foreign(response.status)
    },
  }

  async function call<Answer>(parts: RequestParts): Promise<Answer> {
    const controller = new AbortController()
    const timer = clock.setTimeout(() => controller.abort(), requestTimeoutMs)
    try {
      const response = await exchange({ ...parts, signal: controller.signal })
      const answer = response.status === 204 ? undefined : await response.json()
      if (parts.field && answer[parts.field] === undefined) throw foreign(response.status)
      return answer
    } catch (error) {
      if (controller.signal.aborted) throw new WidgetError('timeout', { retryable: true })
      // Cut off or not JSON: the outcome is unknown.
      throw error instanceof WidgetError ? error : foreign()
    } finally {
      clock.clearTimeout(timer)
    }
  }

  async function exchange(parts: RequestParts, send = fetch): Promise<Response> {
    const headers: Record<string, string> = { 'X-Service-Widget-Version': WIDGET_PUBLIC_API_VERSION, ...parts.headers }
    if (parts.grant) {
      headers.Authorization = `Bearer ${parts.grant}`
      // The answer varies by this header, so no service worker of the page gives it again.
      headers['X-Correlation-Id'] = newRandomId().slice(0, 32)
    }
    if (parts.idempotencyKey) headers['Idempotency-Key'] = parts.idempotencyKey
    if (parts.body) headers['Content-Type'] = 'application/json'

    const response = await send(base + parts.path, {
      method: parts.method,
      headers,
      body: parts.raw ?? (parts.body && JSON.stringify(parts.body)),
      signal: parts.signal,
      credentials: 'omit',
      cache: parts.cache ?? (parts.grant ? 'no-store' : 'default'),
      // A redirect would send the grant to another host, so the request fails.
      redirect: 'error',
    }).catch(() => {
      throw new WidgetError('network_error', { retryable: true })
    })
    if (response.ok) return response
    throw await errorOf(response)
  }
}

const query = (values: object) => new URLSearchParams(values as Record<string, never>)

async function errorOf(response: Response): Promise<WidgetError> {
  const { status, headers } = response
  const envelope = await response.json().catch(() => undefined)
  const { code, retryAfter = headers.get('Retry-After'), ...rest } = (envelope ?? {}) as Partial<ErrorEnvelope>
  const retryAfterMs = Number(retryAfter) * 1_000 || undefined
  if (typeof code !== 'string' || typeof rest.terminal !== 'boolean') return foreign(status, retryAfterMs)
  return new WidgetError(packageCode(code), { ...rest, status, retryAfterMs })
}

/** Limits the wait that a proxy asks for, so that a message is retried and does not fail. */
function foreign(status = 0, retryAfterMs = 0) {
  return new WidgetError('unexpected_response', {
    status,
    retryable: true,
    retryAfterMs: Math.min(longestWaitMs, retryAfterMs),
  })
}
