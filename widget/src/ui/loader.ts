import { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from '../api.ts'
import { sessionRecordKey } from '../session-record.ts'
import type { WidgetConfig } from '../types.ts'
import type { ErrorEnvelope } from '../wire.ts'
import { createLauncherHost } from './launcher-host.ts'
import { launcherTexts } from './launcher-texts.ts'
import { chooseLocale, languageOf, pageLocales } from './locale-choice.ts'
import { preloadModule } from './preload-module.ts'
import { readableRefusal } from './readable-refusal.ts'
import type { ServiceWidget, ServiceWidgetOptions } from './service-widget-types.ts'
import type { createWidget } from './widget.ts'

/** URL of the chat module, relative to `widget.js`. The build sets this constant. */
declare const CHAT_MODULE: string

/** Hash of the chat module. The build sets this constant. */
declare const CHAT_INTEGRITY: string

/**
 * Response body of the configuration route: the configuration or an error envelope. A proxy may
 * also send other JSON.
 */
type ConfigAnswer = Partial<WidgetConfig & ErrorEnvelope>

/** Maximum delay before the configuration is requested again. The actual delay is random. */
const retryWithinMs = 30_000

/**
 * Interface of `widget.js` for the page, available before the chat is loaded. The page gets this
 * object in `event.detail` of the event `service-widget:start`, which bubbles from the script
 * element. The script element also has it in its property `serviceWidget`.
 */
export interface ServiceWidgetLoader {
  /**
   * Adds options that attributes of the script element cannot contain, such as functions. Has no
   * effect once the chat is loaded.
   */
  configure(options: Partial<ServiceWidgetOptions>): void
  /**
   * Loads the code of the chat. A session is created only when the page calls `mount` or `open` of
   * the loaded chat. Rejects if loading fails.
   */
  load(): Promise<ServiceWidget>
  /** Loads and opens the chat. If loading fails, the launcher shows a failure text. */
  open(): Promise<void>
}

const script = document.currentScript as HTMLScriptElement | null
if (script?.dataset) {
  if (document.body) start(script)
  else document.addEventListener('DOMContentLoaded', () => start(script))
}

/**
 * Starts the widget for its script element `<script src="…/widget.js" data-site-key="…"
 * defer></script>`. Shows the launcher and loads the chat on demand.
 */
function start(script: HTMLScriptElement) {
  const { launcher, ...given } = script.dataset
  const options = {
    storage: 'session',
    apiBaseUrl: script.src && new URL(script.src).origin,
    ...given,
    launcher: launcher !== 'hidden',
  } as ServiceWidgetOptions
  const { siteKey } = options
  if (!siteKey) return console.error('Chat: no data-site-key')
  const host = createLauncherHost(options)
  let isMounted: boolean
  let loadFailed: string
  let widget: Promise<ServiceWidget> | undefined
  /**
   * Query of the chat module's URL. Each failed attempt adds a `?`, so that the next attempt uses
   * another URL.
   */
  let query = ''
  const loader: ServiceWidgetLoader = {
    configure: (more) => void Object.assign(options, more),
    load,
    open: () => load().then((loaded) => loaded.open(), showFailure),
  }
  host.button.onclick = loader.open
  Object.assign(script, { serviceWidget: loader })
  dispatch('start', loader)
  void showLauncher()
  if (hasLiveSession()) load().then((loaded) => loaded.mount(), showFailure)

  function load(): Promise<ServiceWidget> {
    widget ??= fetchChat()
    return widget
  }

  async function fetchChat(): Promise<ServiceWidget> {
    host.setFailure('')
    host.button.ariaBusy = 'true'
    try {
      // In a classic script of another origin, `import` cannot resolve relative URLs. Some browsers
      // never load a module again if its first load failed, so a retry uses another URL.
      const { href } = new URL(CHAT_MODULE + query, script.src)
      await preloadModule(href, CHAT_INTEGRITY)
      const chat = (await import(/* @vite-ignore */ href)) as { createWidget: typeof createWidget }
      // Create the chat in a separate task after the module was evaluated, so that no task blocks
      // the page for long.
      await new Promise((resolve) => setTimeout(resolve))
      const made = chat.createWidget(options, () => {
        isMounted = true
        return host
      })
      dispatch('ready', { widget: made })
      return made
    } catch (error) {
      widget = undefined
      query += '?'
      throw error
    } finally {
      host.button.ariaBusy = null
    }
  }

  function showFailure() {
    host.setFailure(loadFailed)
  }

  /**
   * Shows the launcher with the installation's appearance, or with the default appearance if the
   * configuration cannot be loaded. Shows no launcher while the service refuses this page.
   */
  async function showLauncher() {
    for (;;) {
      const answer = await fetchConfig().catch((): ConfigAnswer => ({}))
      // The chat is mounted and controls the launcher itself.
      if (isMounted) return
      if (answer.terminal) host.logRefusal(answer.code!, siteKey)
      else show(answer)
      if (answer.capabilities) return
      await new Promise((resolve) => {
        if (!answer.terminal) setTimeout(resolve, retryWithinMs * Math.random())
        document.addEventListener('visibilitychange', resolve)
      })
    }
  }

  function show({ locale, appearance }: ConfigAnswer) {
    const tag = chooseLocale(options.locale, pageLocales(), Object.keys(launcherTexts), locale)
    ;[host.button.ariaLabel, loadFailed] = launcherTexts[languageOf(tag)]!
    host.frame.lang = tag
    host.setAppearance(appearance)
    document.body.append(host.host)
  }

  async function fetchConfig(): Promise<ConfigAnswer> {
    const { apiBaseUrl } = options
    const response = await readableRefusal(apiBaseUrl, () =>
      fetch(`${apiBaseUrl + WIDGET_PUBLIC_API_PREFIX}/config/${siteKey}`, {
        headers: { 'X-Service-Widget-Version': WIDGET_PUBLIC_API_VERSION },
        credentials: 'omit',
      }),
    )
    return response.json()
  }

  /**
   * Returns true if this tab has a session that has not expired. The chat is then loaded at once,
   * because messages may have arrived. Only reads the storage.
   */
  function hasLiveSession(): boolean {
    try {
      const { times } = JSON.parse(sessionStorage.getItem(sessionRecordKey(siteKey))!)
      return options.storage === 'session' && times.endsAtMs > Date.now()
    } catch {
      return false
    }
  }

  function dispatch(name: string, detail: unknown) {
    script.dispatchEvent(new CustomEvent(`service-widget:${name}`, { bubbles: true, detail }))
  }
}
