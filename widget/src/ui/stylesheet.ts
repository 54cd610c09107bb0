/** Styles that a strict Content-Security-Policy allows; `replace` changes the accent colours. */
export interface Styles {
  replace(css: string): void
}

/**
 * Adds a sheet to a shadow root. A constructable sheet is no inline style, so `style-src` needs no exception; browsers that
 * lack it get a `<style>` element with the page's nonce.
 */
export function adoptStyles(root: ShadowRoot, css: string, nonce: string | undefined): Styles {
  if ('adoptedStyleSheets' in root && 'replaceSync' in CSSStyleSheet.prototype) {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(css)
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet]
    return { replace: (next) => sheet.replaceSync(next) }
  }
  const style = document.createElement('style')
  if (nonce) style.nonce = nonce
  style.textContent = css
  root.append(style)
  return {
    replace: (next) => {
      style.textContent = next
    },
  }
}
