import { WidgetError } from './errors.ts'

/**
 * Checks the options that every client needs. Call before the options are used.
 *
 * @throws WidgetError `site_key_missing`, `site_key_invalid`, `api_base_url_missing` or
 * `api_base_url_invalid`
 */
export function checkOptions(options: { siteKey: string; apiBaseUrl: string } | undefined): void {
  const check = (name: string, value: unknown, isValid: (text: string) => boolean) => {
    if (!value) throw new WidgetError(`${name}_missing`)
    if (typeof value !== 'string' || !isValid(value)) throw new WidgetError(`${name}_invalid`)
  }
  check('site_key', options?.siteKey, (text) => /^[!-~]{1,128}$/.test(text))
  check('api_base_url', options?.apiBaseUrl, (text) => /^https?:\/\/[^?#@\s]+$/i.test(text) && URL.canParse(text))
}
