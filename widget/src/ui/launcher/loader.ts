import type { ServiceWidgetOptions } from '../widget.ts'
import { importChecked } from './import-checked.ts'
import { createLauncher } from './launcher.ts'

/** URL of the chat module, relative to `widget.js`. The build sets this constant. */
declare const CHAT_MODULE: string

/** Hash of the chat module. The build sets this constant. */
declare const CHAT_INTEGRITY: string

const { currentScript } = document
// A module has no `currentScript`. An element of the page with this name must not be taken for it.
const script = (
  currentScript instanceof HTMLScriptElement && currentScript.dataset.siteKey
    ? currentScript
    : document.querySelector('script[data-site-key]')
) as HTMLScriptElement
if (document.body) start()
else addEventListener('DOMContentLoaded', start)

/**
 * Starts the widget for its script element `<script src="…/widget.js" data-site-key="…"
 * defer></script>`. The page gets the loader in `event.detail` of the event `service-widget:start`,
 * which bubbles from the script element, and in the element's property `serviceWidget`.
 */
function start() {
  const { launcher, ...given } = script?.dataset ?? {}
  const options = {
    storage: 'session',
    apiBaseUrl: script?.src && new URL(script.src).origin,
    ...given,
    launcher: launcher !== 'hidden',
  } as ServiceWidgetOptions
  if (!options.siteKey) return console.error('Chat: no data-site-key')
  const loader = createLauncher({
    options,
    // In a classic script of another origin, `import` cannot resolve relative URLs.
    importChat: () => importChecked(new URL(CHAT_MODULE, script.src).href, CHAT_INTEGRITY),
    onReady: (widget) => dispatch('ready', { widget }),
  })
  ;(script as unknown as { serviceWidget: unknown }).serviceWidget = loader
  dispatch('start', loader)

  function dispatch(name: string, detail: unknown) {
    // The page may have removed the script element, for example with the whole body.
    const target = script.isConnected ? script : document
    target.dispatchEvent(new CustomEvent(`service-widget:${name}`, { bubbles: true, detail }))
  }
}
