import type { WidgetConfig } from '../../client/types.ts'
import { sessionRecordKey } from '../../session/session-record.ts'
import { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from '../../transport/api.ts'
import type { ErrorEnvelope } from '../../transport/wire.ts'
import { launcherTexts } from '../languages/launcher-texts.ts'
import { chooseLocale, languageOf, pageLocales } from '../languages/locale-choice.ts'
import type { ServiceWidget, ServiceWidgetOptions } from '../service-widget-types.ts'
import { createLauncherHost, type LauncherHost } from './launcher-host.ts'
import { readableRefusal } from './readable-refusal.ts'

/**
 * Response body of the configuration route: the configuration or an error envelope. A proxy may
 * also send other JSON.
 */
type ConfigAnswer = Partial<WidgetConfig & ErrorEnvelope>

/** Maximum delay before the configuration is requested again. The actual delay is random. */
const retryWithinMs = 30_000

/**
 * Shows the launcher of a page and loads the chat on demand. Before the visitor opens the chat, no
 * session is created and nothing is stored.
 */
export interface ServiceWidgetLoader {
  /**
   * Changes options, for example adds functions, which attributes of the script element cannot
   * contain. If the chat was already created, it is created again with the new options, and the
   * page gets the new widget.
   */
  configure(options: Partial<ServiceWidgetOptions>): void
  /**
   * Loads the code of the chat. A session is created only when the page calls `mount` or `open` of
   * the loaded chat. Rejects if loading fails.
   */
  load(): Promise<ServiceWidget>
  /** Loads and opens the chat. If loading fails, the launcher shows a failure text. */
  open(): Promise<void>
  /** Removes launcher and chat from the page. The tab keeps its session. */
  remove(): void
}

interface LauncherDeps {
  /** Options of the chat. `configure` changes this object. */
  options: ServiceWidgetOptions
  /** Makes one attempt to import the code of the chat. */
  importChat(): Promise<{ createWidget(options: ServiceWidgetOptions, hostOf: () => LauncherHost): ServiceWidget }>
  /** Called with each widget that was created. */
  onReady(widget: ServiceWidget): void
}

/** Creates the loader of a page. The launcher appears when the caller calls `begin`. */
export function createLauncher({ options, importChat, onReady }: LauncherDeps) {
  const { siteKey } = options
  const host = createLauncherHost(options)
  let isMounted: boolean | undefined
  let isRemoved: boolean
  let loadFailed: string
  let made: ServiceWidget | undefined
  let widget: Promise<ServiceWidget> | undefined
  const load = () => (widget ??= createChat())
  const loader: ServiceWidgetLoader = {
    configure(more) {
      Object.assign(options, more)
      if (!made) return
      const then = made.isOpen() ? 'open' : isMounted && 'mount'
      unmount()
      load().then((again) => then && again[then](), showFailure)
    },
    load,
    open: () => load().then((loaded) => loaded.open(), showFailure),
    remove() {
      isRemoved = true
      unmount()
      host.host.remove()
    },
  }
  host.button.onclick = loader.open
  // The code of the chat loads while the visitor reaches for the launcher. This creates no session.
  host.button.onpointerenter = host.button.onfocus = () => widget || importChat().catch(() => {})

  return {
    loader,

    /**
     * Shows the launcher. If the tab has a session, resumes it once the page's own scripts have
     * run, because they may call `configure`.
     */
    begin() {
      void showLauncher()
      const resume = () => {
        if (!widget && hasSession()) load().then((loaded) => loaded.mount(), showFailure)
      }
      if (document.readyState === 'complete') resume()
      else for (const name of ['DOMContentLoaded', 'load']) addEventListener(name, resume)
    },
  }

  async function createChat(): Promise<ServiceWidget> {
    host.setFailure('')
    host.button.ariaBusy = 'true'
    try {
      const chat = await importChat()
      // Create the chat in a separate task after the module was evaluated, so that no task blocks
      // the page for long.
      await new Promise((resolve) => setTimeout(resolve))
      made = chat.createWidget(options, () => {
        isMounted = true
        return host
      })
      onReady(made)
      return made
    } catch (error) {
      widget = undefined
      throw error
    } finally {
      host.button.ariaBusy = null
    }
  }

  function unmount() {
    made?.unmount()
    made = widget = isMounted = undefined
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
      let askAgain!: () => void
      const due = new Promise<void>((resolve) => {
        askAgain = resolve
      })
      // Listens before the request: its answer may be older than a return to this tab.
      document.addEventListener('visibilitychange', askAgain)
      const answer = await fetchConfig().catch((): ConfigAnswer => ({}))
      // A mounted chat controls the launcher itself.
      if (isMounted || isRemoved) return
      if (answer.terminal) host.logRefusal(answer.code!, siteKey)
      else {
        show(answer)
        if (answer.capabilities) return
        setTimeout(askAgain, retryWithinMs * Math.random())
      }
      await due
    }
  }

  function show({ locale, appearance }: ConfigAnswer) {
    const tag = chooseLocale(options.locale, pageLocales(), Object.keys(launcherTexts), locale)
    ;[host.button.ariaLabel, loadFailed] = launcherTexts[languageOf(tag)]!
    host.frame.lang = tag
    host.setAppearance(appearance)
    host.attach(options.container)
  }

  async function fetchConfig(): Promise<ConfigAnswer> {
    const apiBaseUrl = options.apiBaseUrl.replace(/\/+$/, '')
    const response = await readableRefusal(apiBaseUrl, () =>
      fetch(`${apiBaseUrl + WIDGET_PUBLIC_API_PREFIX}/config/${siteKey}`, {
        headers: { 'X-Service-Widget-Version': WIDGET_PUBLIC_API_VERSION },
        credentials: 'omit',
      }),
    )
    return response.json()
  }

  /**
   * Returns true if this tab has a session, or one that has ended. The chat is then loaded at once,
   * because messages may have arrived, or to report the end. A damaged record counts as a session.
   */
  function hasSession(): boolean {
    let stored: string | null = null
    try {
      stored = sessionStorage.getItem(sessionRecordKey(siteKey))
      const { session, ended } = JSON.parse(stored!)
      return options.storage === 'session' && !!(session ?? ended)
    } catch {
      return stored !== null
    }
  }
}
