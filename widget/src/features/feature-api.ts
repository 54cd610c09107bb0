import type { Platform } from '../../../browser/platform.ts'
import type { Api, RequestParts } from '../transport/api.ts'
import { WidgetError } from '../vocabulary/errors.ts'
import type {
  FormKind,
  NavigationOutcome,
  PageContext,
  Rating,
  ScreenshotConsent,
  UploadedScreenshot,
  UploadTerms,
} from '../vocabulary/types.ts'

export interface UploadOptions {
  /** Gets the sent share, from 0 to 1, if the platform can measure it. */
  onProgress?: (share: number) => void
  signal?: AbortSignal
  /** Returns a `fetch` that reports progress. Ignored if the platform has its own `upload`. */
  upload?: Platform['upload']
}

export type FeatureApi = ReturnType<typeof createFeatureApi>

/** Each call makes one attempt and rejects with a `WidgetError`. */
export function createFeatureApi({ call, post, exchange }: Api, upload: Platform['upload']) {
  const report = (path: string, body: object, grant: string) => call<void>({ method: 'POST', path, body, grant })
  return {
    setTyping: (state: 'started' | 'stopped', grant: string) => report('/typing', { state }, grant),

    reportPresence: (tab: string, state: 'here' | 'away', grant: string) => report('/presence', { tab, state }, grant),

    /** Tells operators that the visitor closed the panel. The session continues. */
    closePanel: (grant: string, idempotencyKey: string) =>
      post<{ state: string }>('/sessions/close', 'state', { scope: 'panel' }, idempotencyKey, grant),

    reportPage: (page: PageContext, grant: string) => report('/context/page', page, grant),

    submitForm: (kind: FormKind, fields: Record<string, string>, grant: string, idempotencyKey: string) =>
      post<{ formSubmissionId: string }>(
        kind === 'preChat' ? '/forms/pre-chat' : '/forms/offline',
        'formSubmissionId',
        { fields },
        idempotencyKey,
        grant,
      ),

    rate: (rating: Rating, grant: string, idempotencyKey: string) =>
      post<{ ratedAt: string }>('/ratings', 'ratedAt', rating, idempotencyKey, grant),

    acknowledgeNavigation: (commandId: string, outcome: NavigationOutcome, grant: string) =>
      acknowledge<{ commandId: string; state: string }>('navigation', commandId, { outcome }, outcome, grant),

    acknowledgeScreenshot: (requestId: string, consent: ScreenshotConsent, grant: string) =>
      acknowledge<{ state: string; upload?: UploadTerms }>('screenshots', requestId, { consent }, consent, grant),

    /** Uploads a screenshot with one attempt. Reports progress if the platform can measure it. */
    async uploadScreenshot(
      requestId: string,
      image: Blob,
      grant: string,
      idempotencyKey: string,
      options: UploadOptions,
    ): Promise<UploadedScreenshot> {
      const parts: RequestParts = {
        method: 'POST',
        path: `/commands/screenshots/${encodeURIComponent(requestId)}/upload`,
        headers: { 'Content-Type': image.type },
        raw: image,
        grant,
        idempotencyKey,
        signal: options.signal,
      }
      const response = await exchange(parts, (upload ?? options.upload)?.(options.onProgress))
      return (await response.json().catch(() => {
        throw new WidgetError('unexpected_response', { retryable: true })
      })) as UploadedScreenshot
    },
  }

  /** The key is made of the request's id and the answer, so that repeats of several tabs are one operation. */
  function acknowledge<Answer>(kind: string, id: string, body: object, answer: string, grant: string) {
    const path = `/commands/${kind}/${encodeURIComponent(id)}/acknowledgements`
    return post<Answer>(path, 'state', body, `${id}.${answer}`, grant)
  }
}
