import type { Api, RequestParts } from './api.ts'
import { WidgetError } from './errors.ts'
import type { Platform } from './platform.ts'
import type {
  FormKind,
  NavigationOutcome,
  PageContext,
  ScreenshotConsent,
  UploadedScreenshot,
  UploadTerms,
} from './types.ts'

export interface UploadOptions {
  /** Called with the share that was sent, from 0 to 1, if the platform can measure it. */
  onProgress?: (share: number) => void
  signal?: AbortSignal
  /** A `fetch` that reports progress, if the platform has none. */
  upload?: Platform['upload']
}

export type FeatureApi = ReturnType<typeof createFeatureApi>

/** Routes for typing, page reports, forms and agents' requests. Each call makes one attempt and rejects with a `WidgetError`. */
export function createFeatureApi({ call, exchange }: Pick<Api, 'call' | 'exchange'>, upload: Platform['upload']) {
  return {
    setTyping: (state: 'started' | 'stopped', grant: string) =>
      call<void>({ method: 'POST', path: '/typing', body: { state }, grant }),

    reportPage: (page: PageContext, grant: string) =>
      call<void>({ method: 'POST', path: '/context/page', body: page, grant }),

    submitForm: (kind: FormKind, fields: Record<string, string>, grant: string, idempotencyKey: string) =>
      call<{ formSubmissionId: string }>({
        method: 'POST',
        path: kind === 'preChat' ? '/forms/pre-chat' : '/forms/offline',
        field: 'formSubmissionId',
        body: { fields },
        grant,
        idempotencyKey,
      }),

    acknowledgeNavigation: (commandId: string, outcome: NavigationOutcome, grant: string) =>
      call<{ commandId: string; state: string }>({
        method: 'POST',
        path: `/commands/navigation/${encodeURIComponent(commandId)}/acknowledgements`,
        field: 'state',
        body: { outcome },
        grant,
        // One answer is one operation, whichever page or tab repeats it.
        idempotencyKey: `${commandId}.${outcome}`,
      }),

    acknowledgeScreenshot: (requestId: string, consent: ScreenshotConsent, grant: string) =>
      call<{ requestId: string; state: string; upload?: UploadTerms }>({
        method: 'POST',
        path: `/commands/screenshots/${encodeURIComponent(requestId)}/acknowledgements`,
        field: 'state',
        body: { consent },
        grant,
        idempotencyKey: `${requestId}.${consent}`,
      }),

    /** Makes one attempt to upload a screenshot. Reports progress if the platform can measure it. */
    async uploadScreenshot(
      requestId: string,
      image: Blob,
      grant: string,
      idempotencyKey: string,
      options: UploadOptions,
    ): Promise<UploadedScreenshot> {
      const path = `/commands/screenshots/${encodeURIComponent(requestId)}/upload`
      const headers = { 'Content-Type': image.type }
      const parts: RequestParts = {
        method: 'POST',
        path,
        headers,
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
}
