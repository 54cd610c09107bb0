import type { Platform } from '../../../browser/platform.ts'
import type { StorageMode } from '../../../browser/storage.ts'
import type { SupportedRequests } from '../features/feature-parts.ts'
import { WidgetError } from '../vocabulary/errors.ts'
import type { IdentityProvider, PageContext } from '../vocabulary/types.ts'

export interface ServiceClientOptions {
  /** Public key of the installation. The key is not a credential. */
  siteKey: string
  /** Base URL of the service, for example `https://chat.example.com`. */
  apiBaseUrl: string
  /**
   * Returns an assertion of the visitor's identity. Called by `start` and `identify`. The assertion
   * is never stored.
   */
  identityProvider?: IdentityProvider
  /** Where the session is stored. The default `session` is the tab's session storage. */
  storage?: StorageMode
  /** Locale tag of the visitor, for example `de-CH`. */
  locale?: string
  /** Returns the visitor's current page. Not called if the capability `pageContext` is off. */
  pageContext?: () => PageContext | undefined
  /** Kinds of agents' requests that the application handles. The client answers other kinds with `unsupported`. */
  supports?: Partial<SupportedRequests>
  /** Replaces parts of the platform. Used by tests and by hosts without a browser. */
  platform?: Partial<Platform>
}

/**
 * Checks the options that every client needs. Call before the options are used.
 *
 * @throws WidgetError `site_key_missing`, `site_key_invalid`, `api_base_url_missing` or
 * `api_base_url_invalid`
 */
export function checkOptions({ siteKey, apiBaseUrl } = {} as ServiceClientOptions): void {
  if (!siteKey) throw new WidgetError('site_key_missing')
  if (!/^[!-~]{1,128}$/.test(siteKey)) throw new WidgetError('site_key_invalid')
  if (!apiBaseUrl) throw new WidgetError('api_base_url_missing')
  const isUrl = /^https?:\/\/[^?#@\s]+$/i.test(apiBaseUrl) && URL.canParse(apiBaseUrl)
  if (!isUrl) throw new WidgetError('api_base_url_invalid')
}
