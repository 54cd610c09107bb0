import { element } from '../elements/elements.ts'

/** Some browsers never load a module again after a failure, so each failure adds a `?`. */
let query = ''

/**
 * Imports a module if its content matches the hash. Rejects otherwise; the next call tries again.
 *
 * @param integrity hash as in the attribute `integrity` of a script element
 */
export async function importChecked<Module>(url: string, integrity: string): Promise<Module> {
  const href = url + query
  try {
    await preload(href, integrity)
    return await import(/* @vite-ignore */ href)
  } catch (error) {
    query += '?'
    throw error
  }
}

/**
 * Fetches a module and rejects if its content does not match the hash. A later `import` of the same
 * URL uses the fetched module. This needs no inline script and no Trusted Type, unlike the integrity
 * of an import map.
 */
function preload(href: string, integrity: string) {
  // WebKit preloads modules without checking their hash. Its `import` uses this cached response.
  if (/^A/.test(navigator.vendor)) return fetch(href, { integrity })
  const link = element('link', { rel: 'modulepreload', crossorigin: '', integrity, href })
  return new Promise((resolve, reject) => {
    link.onload = resolve
    link.onerror = reject
    document.head.append(link)
  }).finally(() => link.remove())
}
