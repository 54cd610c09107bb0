import { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from '../api.ts'
import { sessionRecordKey } from '../session-record.ts'
import type { WidgetConfig } from '../types.ts'
import type { ErrorEnvelope } from '../wire.ts'
import { createLauncherHost } from './launcher-host.ts'
import { launcherTexts } from './launcher-texts.ts'
import { chooseLocale, languageOf, pageLocales } from './locale-choice.ts'
import { readableRefusal } from './readable-refusal.ts'
import type { ServiceWidget, ServiceWidgetOptions } from './service-widget-types.ts'
import type { createWidget } from './widget.ts'

/** Address of the chat module, relative to this script. */
declare const CHAT_MODULE: string

/** The configuration, or the error envelope in its place, or neither. */
type ConfigAnswer = Partial<WidgetConfig & ErrorEnvelope>

/** The configuration is asked for again after a random part of this. */
const retryWithinMs = 30_000

/**
 * What a page gets hold of before the chat is loaded: in `event.detail` of `service-widget:start`, which bubbles from the
 * script's element, or as that element's property `serviceWidget`.
 */
export interface ServiceWidgetLoader {
  /** Adds options that no attribute can hold, such as functions. Counts until the chat is loaded. */
  configure(options: Partial<ServiceWidgetOptions>): void
  /** Loads the chat and resolves to its widget, whose `mount` or `open` creates a session. Rejects if loading fails. */
  load(): Promise<ServiceWidget>
  /** Loads the chat and opens it. The launcher shows a failure. */
  open(): Promise<void>
}

const script = document.currentScript as HTMLScriptElement | null
if (script?.dataset) {
  if (document.body) start(script)
  else document.addEventListener('DOMContentLoaded', () => start(script))
}

/** `<script src="…/widget.js" data-site-key="…" defer></script>`: shows the launcher, and fetches the rest when it is wanted. */
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
  /** Makes another address of each further attempt. */
  let query = ''
  const loader: ServiceWidgetLoader = {
    configure: (more) => void Object.assign(options, more),
    load,
    open: () => load().then((loaded) => loaded.open(), tellFailure),
  }
  host.button.onclick = loader.open
  Object.assign(script, { serviceWidget: loader })
  tell('start', loader)
  void showLauncher()
  if (hasLiveSession()) load().then((loaded) => loaded.mount(), tellFailure)

  function load(): Promise<ServiceWidget> {
    widget ??= fetchChat()
    return widget
  }

  async function fetchChat(): Promise<ServiceWidget> {
    host.setFailure('')
    host.button.ariaBusy = 'true'
    try {
      // A script of another origin is told no address of its own, so `import` cannot resolve against it. And browsers differ in
      // whether a module that failed once is ever asked for again: another address is another module.
      const { href } = new URL(CHAT_MODULE + query, script.src)
      const chat = (await import(/* @vite-ignore */ href)) as { createWidget: typeof createWidget }
      // Reading the chat's code and building it are two tasks, so that neither holds up the page for long.
      await new Promise((resolve) => setTimeout(resolve))
      const made = chat.createWidget(options, () => {
        isMounted = true
        return host
      })
      tell('ready', { widget: made })
      return made
    } catch (error) {
      widget = undefined
      query += '?'
      throw error
    } finally {
      host.button.ariaBusy = null
    }
  }

  function tellFailure() {
    host.setFailure(loadFailed)
  }

  /**
   * Shows the launcher in the installation's colours, or in the package's own until the configuration can be fetched. There is
   * none while the service refuses the page.
   */
  async function showLauncher() {
    for (;;) {
      const answer = await fetchConfig().catch((): ConfigAnswer => ({}))
      // The chat may have been mounted meanwhile. It then takes care of its launcher.
      if (isMounted) return
      if (answer.terminal) host.tellRefusal(answer.code!, siteKey)
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

  /** Whether this tab has a chat going on, in which messages may be waiting. Nothing is written. */
  function hasLiveSession(): boolean {
    try {
      const { times } = JSON.parse(sessionStorage.getItem(sessionRecordKey(siteKey))!)
      return options.storage === 'session' && times.expiresAtMs > Date.now()
    } catch {
      return false
    }
  }

  function tell(name: string, detail: unknown) {
    script.dispatchEvent(new CustomEvent(`service-widget:${name}`, { bubbles: true, detail }))
  }
}
