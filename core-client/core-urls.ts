export const CORE_URLS_DESCRIPTION =
  'Cores, separated by commas; `dns://core:8090` is each address that the name has, looked up again and again.'

/** What `CORE_URLS` may be, for the message that says so. */
export const CORE_URLS_RULE =
  'must be one or more http, https or dns URLs without user info, separated by commas, those of dns with a port: dns://core:8090'

/** The entries of `CORE_URLS`; undefined where one of them is not allowed. */
export function parseCoreUrls(list: string): string[] | undefined {
  const urls = list
    .split(',')
    .map((url) => url.trim())
    .filter(Boolean)
  return urls.length > 0 && urls.every(isCoreUrl) ? urls : undefined
}

function isCoreUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.hostname === '') return false
  return url.protocol === 'dns:' ? url.port !== '' : /^https?:$/.test(url.protocol)
}
