export const CORE_URLS_DESCRIPTION =
  'Cores, separated by commas. `dns://core:8090` stands for every address of the name, looked up regularly.'

/** Rule for `CORE_URLS`, for error messages. */
export const CORE_URLS_RULE =
  'must be one or more http, https or dns URLs without user info, separated by commas; dns URLs need a port, like dns://core:8090'

/** Returns the entries of `CORE_URLS`, or undefined if one is invalid. */
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
