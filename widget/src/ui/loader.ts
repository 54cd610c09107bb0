import { createLauncher } from './launcher.ts'
import { preloadModule } from './preload-module.ts'
import type { ServiceWidgetOptions } from './service-widget-types.ts'
import type { createWidget } from './widget.ts'

/** URL of the chat module, relative to `widget.js`. The build sets this constant. */
declare const CHAT_MODULE: string

/** Hash of the chat module. The build sets this constant. */
declare const CHAT_INTEGRITY: string

const script = document.currentScript as HTMLScriptElement | null
if (script?.dataset) {
  if (document.body) start(script)
  else document.addEventListener('DOMContentLoaded', () => start(script))
}

/**
 * Starts the widget for its script element `<script src="…/widget.js" data-site-key="…"
 * defer></script>`. The page gets the loader in `event.detail` of the event `service-widget:start`,
 * which bubbles from the script element, and in the element's property `serviceWidget`.
 */
function start(script: HTMLScriptElement) {
  const { launcher, ...given } = script.dataset
  const options = {
    storage: 'session',
    apiBaseUrl: script.src && new URL(script.src).origin,
    ...given,
    launcher: launcher !== 'hidden',
  } as ServiceWidgetOptions
  if (!options.siteKey) return console.error('Chat: no data-site-key')
  /**
   * Query of the chat module's URL. Each failed attempt adds a `?`, so that the next attempt uses
   * another URL.
   */
  let query = ''
  const { loader, begin } = createLauncher({
    options,
    async importChat() {
      // In a classic script of another origin, `import` cannot resolve relative URLs. Some browsers
      // never load a module again if its first load failed, so a retry uses another URL.
      const { href } = new URL(CHAT_MODULE + query, script.src)
      try {
        await preloadModule(href, CHAT_INTEGRITY)
        return (await import(/* @vite-ignore */ href)) as { createWidget: typeof createWidget }
      } catch (error) {
        query += '?'
        throw error
      }
    },
    onReady: (widget) => dispatch('ready', { widget }),
  })
  Object.assign(script, { serviceWidget: loader })
  dispatch('start', loader)
  begin()

  function dispatch(name: string, detail: unknown) {
    script.dispatchEvent(new CustomEvent(`service-widget:${name}`, { bubbles: true, detail }))
  }
}
