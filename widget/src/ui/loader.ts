import { WIDGET_PUBLIC_API_PREFIX, WIDGET_PUBLIC_API_VERSION } from '../api.ts'
import { sessionRecordKey } from '../session-record.ts'
import type { WidgetConfig } from '../types.ts'
import { createLauncherHost } from './launcher-host.ts'
import { launcherTexts } from './launcher-texts.ts'
import { chooseLocale, languageOf, pageLocales } from './locale-choice.ts'
import type { createWidget, ServiceWidget, ServiceWidgetOptions } from './widget.ts'

/** Where the build has put the chat itself, relative to this script's own address. */
declare const CHAT_MODULE: string

/**
 * What a page gets hold of before the chat is loaded: in `event.detail` of `service-widget:start`, which bubbles from the
 * script's element, or as that element's property `serviceWidget`.
 */
export interface ServiceWidgetLoader {
  /** Adds options that no attribute can hold, such as functions. Counts until the chat is loaded. */
  configure(options: Partial<ServiceWidgetOptions>): void
  /** Loads the chat. Makes no session: that is `mount` or `open` of the widget it resolves to. Rejects where it cannot be loaded. */
  load(): Promise<ServiceWidget>
  /** Loads the chat and opens it. Where that fails, the launcher says so. */
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
  if (!siteKey) return console.error('Chat: data-site-key is missing')
  const host = createLauncherHost(options)
  let isMounted = false
  let loadFailed = ''
  let widget: Promise<ServiceWidget> | undefined
  let failures = 0
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
    host.setFailure()
    host.button.ariaBusy = 'true'
    try {
      // A script of another origin is told no address of its own, so `import` cannot resolve against it. And browsers differ in
      // whether a module that failed once is ever asked for again: another address is another module.
      const { href } = new URL(CHAT_MODULE + (failures ? `?${failures}` : ''), script.src)
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
      failures += 1
      throw error
    } finally {
      host.button.ariaBusy = null
    }
  }

  function tellFailure() {
    host.setFailure(loadFailed)
  }

  /** The launcher comes in the installation's colours; where those cannot be had, in the package's own. */
  async function showLauncher() {
    const config = await fetchConfig()
    // A reload, or the page itself, may have been quicker: the chat then looks after its launcher.
    if (isMounted) return
    const { frame, button, host: element, setAppearance } = host
    const tag = chooseLocale(options.locale, pageLocales(), Object.keys(launcherTexts), config?.locale)
    ;[button.ariaLabel, loadFailed] = launcherTexts[languageOf(tag)]!
    frame.lang = tag
    setAppearance(config?.appearance)
    document.body.append(element)
  }

  async function fetchConfig(): Promise<WidgetConfig | undefined> {
    try {
      const response = await fetch(`${options.apiBaseUrl + WIDGET_PUBLIC_API_PREFIX}/config/${siteKey}`, {
        headers: { 'X-Service-Widget-Version': WIDGET_PUBLIC_API_VERSION },
        credentials: 'omit',
      })
      const answer = await response.json()
      if (response.ok) return answer
      console.error(`Chat: ${answer.code}`)
    } catch {}
    return undefined
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
