/**
 * Fetches a module and rejects if its content does not match the hash. A later `import` of the same
 * URL uses the fetched module. This needs no inline script and no Trusted Type, unlike the integrity
 * of an import map.
 *
 * @param integrity hash as in the attribute `integrity` of a script element
 */
export function preloadModule(href: string, integrity: string): Promise<unknown> {
  // WebKit preloads modules without checking their hash. Its `import` uses the cached response of
  // this fetch.
  if (/^Apple/.test(navigator.vendor)) return fetch(href, { integrity })
  const link = document.createElement('link')
  Object.assign(link, { rel: 'modulepreload', crossOrigin: 'anonymous', integrity, href })
  return new Promise((resolve, reject) => {
    link.onload = resolve
    link.onerror = reject
    document.head.append(link)
  }).finally(() => link.remove())
}
