import { createServiceWidget } from './widget.ts'

/**
 * The self-starting build: `<script src="…/widget.js" data-site-key="…" data-api-base-url="…" defer></script>`. It leaves no
 * global behind; a page that wants the widget listens for `service-widget:ready` on the script's element or above it, and
 * finds it in `event.detail.widget`.
 */
const script = document.currentScript
if (script instanceof HTMLScriptElement) {
  const { siteKey, apiBaseUrl, storage, locale } = script.dataset
  if (!siteKey || !apiBaseUrl) {
    console.error('The chat widget needs data-site-key and data-api-base-url on its script element.')
  } else {
    start({ siteKey, apiBaseUrl, storage: storage === 'memory' ? 'memory' : 'session', locale, nonce: script.nonce })
  }
}

function start(options: Parameters<typeof createServiceWidget>[0]) {
  const begin = () => {
    const widget = createServiceWidget(options)
    script?.dispatchEvent(new CustomEvent('service-widget:ready', { bubbles: true, detail: { widget } }))
    void widget.mount()
  }
  if (document.body) begin()
  else document.addEventListener('DOMContentLoaded', begin, { once: true })
}
