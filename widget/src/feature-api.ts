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
  /** Told how much is sent, from 0 to 1, where that can be told. */
  onProgress?: (share: number) => void
  signal?: AbortSignal
  /** A `fetch` that tells how much is sent, where the platform has none. */
  upload?: Platform['upload']
}

export type FeatureApi = ReturnType<typeof createFeatureApi>

/** The routes for what a chat has beside messages. Each call makes one attempt and rejects with a `WidgetError`. */
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

    /** One attempt at the bytes of a screenshot. The progress is told where the browser can tell it. */
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
