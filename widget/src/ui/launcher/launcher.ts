import { sessionRecordKey } from '../../session/session-record.ts'
import { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from '../../transport/api.ts'
import type { ErrorEnvelope } from '../../vocabulary/gen/wire.ts'
import type { WidgetConfig } from '../../vocabulary/types.ts'
import { launcherTexts } from '../languages/launcher-texts.ts'
import { firstLocale, languageOf, pageLocales } from '../languages/locale-choice.ts'
import type { ServiceWidget, ServiceWidgetOptions } from '../widget.ts'
import { createLauncherHost } from './launcher-host.ts'

/** The configuration or an error envelope. A proxy may also send other JSON. */
type ConfigAnswer = Partial<WidgetConfig & ErrorEnvelope>

/** Maximum delay before the configuration is requested again. The actual delay is random. */
const retryWithinMs = 30_000

/** Property of the document with its loaders. It survives all that scripts do with the page. */
const registry = Symbol.for('serviceWidget')

/** Shows a launcher and loads the chat on demand. Before that, there is no session and nothing is stored. */
export interface ServiceWidgetLoader {
  /**
   * Changes options, for example adds functions, which attributes of the script element cannot
   * contain. If the chat was already created, it is created again with the new options, and the
   * page gets the new widget.
   */
  configure(options: Partial<ServiceWidgetOptions>): void
  /** Loads the code. Only `mount` or `open` of the loaded chat creates a session. */
  load(): Promise<ServiceWidget>
  /** Loads and opens the chat. If loading fails, the launcher shows a failure text. */
  open(): Promise<void>
  /** Removes launcher and chat from the page. The tab keeps its session. */
  remove(): void
}

interface LauncherDeps {
  /** Options of the chat. `configure` changes this object. */
  options: ServiceWidgetOptions
  importChat(): Promise<typeof import('../chat-entry.ts')>
  onReady(widget: ServiceWidget): void
}

/** Returns the loader that the page has for this site key, or a new one. */
export function createLauncher({ options, importChat, onReady }: LauncherDeps): ServiceWidgetLoader {
  const { siteKey } = options
  const page = document as unknown as Record<symbol, Record<string, ServiceWidgetLoader>>
  const running = page[registry] ?? {}
  page[registry] = running
  if (running[siteKey]) {
    console.warn(`Chat: ${siteKey} runs already`)
    return running[siteKey]
  }
  const host = createLauncherHost(options)
  const { button, failed } = host
  /** True if the chat is mounted and controls the launcher, or if the page has removed the loader. */
  let isTaken: boolean | undefined
  let loadFailed: string
  let made: ServiceWidget | undefined
  let widget: Promise<ServiceWidget> | undefined
  const load = () => (widget ??= createChat())
  const loadAnd = (act?: 'open' | 'mount' | false) =>
    load().then((loaded) => act && widget && loaded[act](), showFailure) as Promise<void>
  const loader: ServiceWidgetLoader = {
    configure(more) {
      Object.assign(options, more)
      if (!made) return
      const then = made.isOpen() ? 'open' : isTaken && 'mount'
      unmount()
      void loadAnd(then)
    },
    load,
    open: () => loadAnd('open'),
    remove() {
      unmount()
      isTaken = true
      host.detach()
      delete running[siteKey]
    },
  }
  host.listen = () => {
    button.onclick = loader.open
    // The code of the chat loads while the visitor reaches for the launcher. This creates no session.
    button.onpointerenter = button.onfocus = () => widget || importChat().catch(() => {})
  }
  void showLauncher()
  running[siteKey] = loader
  return loader

  async function createChat(): Promise<ServiceWidget> {
    failed.textContent = ''
    button.ariaBusy = 'true'
    try {
      const chat = await importChat()
      // A task of its own, so that no task blocks the page for long.
      await new Promise((resolve) => setTimeout(resolve))
      made = chat.createWidget(options, () => {
        isTaken = true
        return host
      })
      onReady(made)
      return made
    } catch (error) {
      widget = undefined
      throw error
    } finally {
      button.ariaBusy = null
    }
  }

  function unmount() {
    made?.unmount()
    made = widget = isTaken = undefined
  }

  function showFailure() {
    failed.textContent = loadFailed
  }

  /**
   * Shows the launcher with the installation's appearance, or with the default appearance if the
   * configuration cannot be loaded. Shows no launcher while the service refuses this page. If the tab
   * has a session, resumes it once the page's own scripts have run, because they may call `configure`.
   */
  async function showLauncher() {
    await null
    const resume = () => {
      if (!isTaken && !widget && hasSession()) void loadAnd('mount')
    }
    for (const name of ['DOMContentLoaded', 'load']) addEventListener(name, resume)
    if (document.readyState === 'complete') resume()
    for (;;) {
      let askAgain!: (value?: unknown) => void
      const due = new Promise((resolve) => {
        // Listens before the request: its answer may be older than a return to this tab.
        document.addEventListener('visibilitychange', resolve)
        askAgain = resolve
      })
      const answer = await fetchConfig().catch((): ConfigAnswer => ({}))
      if (isTaken) return
      if (answer.terminal) importChat().then((chat) => chat.logRefusal(answer.code!, siteKey), showFailure)
      else {
        show(answer)
        if (answer.capabilities) return
        setTimeout(askAgain, retryWithinMs * Math.random())
      }
      await due
    }
  }

  function show({ locale, appearance }: ConfigAnswer) {
    const language = languageOf(firstLocale(options.locale, pageLocales(), Object.keys(launcherTexts), locale))
    ;[button.ariaLabel, loadFailed] = launcherTexts[language]!
    host.frame.lang = language
    host.setAppearance(appearance)
    host.attach()
  }

  async function fetchConfig(): Promise<ConfigAnswer> {
    const apiBaseUrl = options.apiBaseUrl.replace(/\/+$/, '')
    const ask = () =>
      fetch(`${apiBaseUrl + WIDGET_PUBLIC_API_PREFIX}/config/${siteKey}`, {
        headers: { 'X-Service-Widget-Version': WIDGET_PUBLIC_API_VERSION },
        credentials: 'omit',
      })
    const response = await ask().catch(async () => (await importChat()).readableRefusal(apiBaseUrl, ask))
    return response.json()
  }

  /** Returns true if the tab has a session, also one that has ended. A damaged record counts as one. */
  function hasSession() {
    try {
      const stored = sessionStorage.getItem(sessionRecordKey(siteKey)) ?? ''
      return options.storage === 'session' && /"(session|ended)":|[^}]$/.test(stored)
    } catch {
      return false
    }
  }
}
