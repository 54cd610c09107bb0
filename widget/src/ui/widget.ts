import { pagePlatform } from '../../../browser/page-tabs.ts'
import { storageFor } from '../../../browser/storage.ts'
import { widgetLocales } from '../../../contract/widget-locales.ts'
import { createServiceClient } from '../client/client.ts'
import { checkOptions, type ServiceClientOptions } from '../client/client-options.ts'
import { sessionRecordKey } from '../session/session-record.ts'
import { createEmitter } from '../vocabulary/events.ts'
import type { VisitorReset } from '../vocabulary/types.ts'
import { englishTexts, type WidgetTexts } from './languages/en.ts'
import { browserLocale, chooseLocale, languageOf, pageLocales, wellFormed } from './languages/locale-choice.ts'
import { loadTexts } from './languages/locales.ts'
import type { LauncherHost } from './launcher/launcher-host.ts'
import { type Announcer, createAnnouncer, followAnswers } from './panel/answers.ts'
import { currentPage, followPages, followVisualViewport } from './panel/follow-pages.ts'
import { createPanel, fullScreenQuery, type Panel } from './panel/panel.ts'
import { followRefusals, logRefusal, readableFetch } from './panel/refusals.ts'
import { createShell, type Shell, type ShellOptions, type Theme } from './panel/shell.ts'
import type { LoadPart } from './parts.ts'

export interface ServiceWidgetOptions extends ServiceClientOptions, ShellOptions {
  /** Texts that replace the default texts of the user interface in all languages. */
  texts?: Partial<WidgetTexts>
  /** Texts of one language, or of a new one. The keys are tags such as `de` or `de-CH`. */
  localeTexts?: Record<string, Partial<WidgetTexts>>
}

interface Mounted {
  host: LauncherHost
  shell: Shell
  announcer: Announcer
  /** The chat panel. Undefined until the texts of the chosen language are loaded. */
  panel?: Panel
  remove(): void
}

export type ServiceWidget = ReturnType<typeof createWidget>

const panelId = 'panel'

/** Lets the browser run other tasks, so that the page stays responsive during long work. */
const nextTask = () => new Promise((resolve) => setTimeout(resolve))

/**
 * Creates the chat with its launcher. Before `mount`, the chat accesses neither the page nor its
 * storage.
 *
 * @param loadPart loads code that most visitors do not need
 */
export function createWidget(given: ServiceWidgetOptions, hostOf: () => LauncherHost, loadPart: LoadPart) {
  checkOptions(given)
  let { texts, localeTexts, locale, ...options } = given
  locale = locale && wellFormed(locale)
  const { embedded = false } = options
  const emitter = createEmitter()
  const platform = {
    ...pagePlatform(options.apiBaseUrl),
    storage: storageFor(options.storage ?? 'session'),
    ...options.platform,
    fetch: readableFetch(options),
  }
  const supports = { navigation: true, screenshots: true, ...options.supports }
  const client = createServiceClient(
    { pageContext: currentPage, ...options, locale: locale ?? browserLocale(), platform, supports },
    emitter,
  )
  /** Says in the storage that the panel is open, so that the next page in this tab opens it again. */
  const openKey = `${sessionRecordKey(options.siteKey)}.open`
  let mounted: Mounted | undefined
  let shownTexts: WidgetTexts = { ...englishTexts, ...texts }
  let shownLocale: string | undefined
  let isOpen = false
  let newCount = 0
  /** Text of the message field while no panel shows it. */
  let draft = ''
  /** Text that the page last wrote with `prefill`. */
  let prefilled = ''
  /** Session record that an earlier page stored, as JSON. Empty once this page has a session. */
  let storedRecord = ''
  let movesFocus = true
  let focusedBefore: Element | null = null

  const answers = followAnswers({
    client,
    texts: () => shownTexts,
    isOpen: () => isOpen,
    mounted: () => mounted,
    storage: platform.storage,
    siteKey: options.siteKey,
    onOpen: () => setOpen(true),
  })
  for (const name of ['unread.changed', 'requests.changed'] as const) client.on(name, showLauncherState)
  client.on('config.loaded', configure)
  const refusals = followRefusals(client, (code) => {
    if (code && mounted) logRefusal(code, options.siteKey)
    showLauncherState()
  })
  client.on('error', ({ code }) => logRefusal(code, options.siteKey))
  client.on('session.ready', ({ session }) => {
    // An earlier page created this session, so report the current page to the service.
    if (storedRecord.includes(session.sessionId)) client.updatePageContext()
    storedRecord = ''
  })

  const ofClient = pick(client, 'sendMessage', 'retryMessage', 'ended', 'startNew', 'messages', 'identify')
  const further = pick(client, 'clearIdentity', 'updatePageContext', 'on', 'once')
  return Object.assign(ofClient, further, {
    /**
     * Shows the launcher, and resumes the tab's session or creates one. The session is renewed until
     * `unmount`. Resolves when the session exists or the attempt to obtain one has ended. Never
     * rejects.
     */
    mount,
    /** Removes the widget from the page. A later `mount` resumes the session. */
    unmount(): void {
      if (!mounted) return
      isOpen = false
      platform.storage.removeItem(openKey)
      client.setChatShown(false)
      mounted.remove()
      mounted = shownLocale = undefined
      client.stop()
    },
    /** Opens the panel. Calls `mount` first if necessary. */
    open: () => setOpen(true),
    /** Closes the panel. The session continues. */
    close: () => setOpen(false),
    toggle,
    setOpen: (isOpen: boolean) => setOpen(isOpen),
    isOpen: () => isOpen,
    showLauncher: () => setLauncher(true),
    /** Hides the launcher. The page can still open the panel with `open`. */
    hideLauncher: () => setLauncher(false),
    setTheme(theme: Theme): void {
      options.theme = theme
      mounted?.shell.setTheme(theme)
    },
    /** Changes the language at once. Undefined chooses it from the page and the browser again. */
    setLocale(next: string | undefined): void {
      locale = next
      updateLanguage()
    },
    /** Sets the text of the message field, unless the visitor has written one. */
    prefill,
    /** Number of messages that arrived after the panel was last open. The launcher also counts requests. */
    unreadCount: client.unread,
    /** Removes the visitor's data that `what` selects, for example on logout. */
    async resetVisitor(what?: VisitorReset): Promise<void> {
      try {
        await client.resetVisitor(what)
      } finally {
        draft = client.draft()
        mounted?.panel?.setDraft(draft)
      }
    },
  })

  function mount() {
    if (!mounted) {
      mounted = build()
      configure()
      storedRecord = platform.storage.getItem(sessionRecordKey(options.siteKey)) ?? ''
      // On a small screen, the panel would cover the new page.
      const wasOpen = platform.storage.getItem(openKey) && !matchMedia(fullScreenQuery).matches
      if (embedded || wasOpen) setOpen(true, false)
    }
    return client.start()
  }

  function build(): Mounted {
    const host = hostOf()
    const shell = createShell(host, options)
    const announcer = createAnnouncer()
    shell.frame.append(announcer.element)
    host.button.onclick = toggle
    host.onReturn = () => {
      shell.restoreFocus()
      mounted?.panel?.restoreScroll()
    }
    host.listen = createAgain
    const unfollow = followVisualViewport(shell.frame)
    const unfollowRefusals = refusals.watch()
    const unfollowPages = followPages(() => client.updatePageContext())
    return {
      host,
      shell,
      announcer,
      remove() {
        unfollow()
        unfollowRefusals()
        unfollowPages()
        mounted?.panel?.remove()
        answers.dispose()
        announcer.element.remove()
        shell.remove()
      },
    }
  }

  function createAgain() {
    mounted!.host.button.onclick = toggle
    answers.dispose()
    shownLocale = undefined
    updateLanguage()
  }

  function configure() {
    mounted?.shell.setAppearance(client.config()?.appearance)
    updateLanguage()
  }

  /** If the language has changed, creates the panel again. */
  function updateLanguage() {
    const known = [...widgetLocales, ...Object.keys(localeTexts ?? {})]
    const chosen = mounted && chooseLocale(locale, pageLocales(), known, client.config()?.locale)
    if (!chosen || chosen === shownLocale) return
    shownLocale = chosen
    void Promise.all([loadTexts(chosen, loadPart), nextTask()]).then(([own]) => {
      if (chosen === shownLocale) show(chosen, own)
    })
  }

  function show(chosen: string, own: WidgetTexts) {
    if (!mounted) return
    shownTexts = { ...own, ...texts, ...localeTexts?.[languageOf(chosen)], ...localeTexts?.[chosen] }
    const { shell, announcer, panel: before } = mounted
    const hadFocus = before?.element.contains(shell.focused())
    if (before) draft = before.draft()
    before?.remove()
    const panel = createPanel({
      client,
      texts: shownTexts,
      locale: chosen,
      panelId,
      embedded,
      onClose: () => setOpen(false),
      announce: announcer.announce,
      conceal: shell.conceal,
      addStyles: shell.addStyles,
      loadPart,
      prefilled: () => prefilled,
    })
    mounted.panel = panel
    // The visitor's text wins over that of the page.
    panel.setDraft(draft === prefilled ? client.draft() || draft : draft || client.draft())
    shell.setLocale(chosen)
    shell.frame.append(panel.element)
    shell.button.setAttribute('aria-controls', panelId)
    showLauncherState()
    if (!isOpen) return
    void nextTask().then(() => {
      if (isOpen && mounted?.panel === panel) panel.show(before ? hadFocus === true : movesFocus, newCount)
    })
  }

  function setOpen(next: boolean, focuses = true) {
    if (next === isOpen || (embedded && !next)) return
    client.setChatShown(next)
    if (next) {
      if (!embedded) platform.storage.setItem(openKey, 'true')
      isOpen = true
      movesFocus = focuses
      newCount = client.unread()
      focusedBefore = mounted?.shell.focused() ? null : document.activeElement
      void mount()
      refusals.tryAgain()
      const { panel, announcer } = mounted!
      announcer.clear()
      answers.clear()
      showLauncherState()
      panel?.show(focuses, newCount)
      emitter.emit('panel.opened', {})
      return
    }
    platform.storage.removeItem(openKey)
    isOpen = false
    const { shell, panel } = mounted!
    const hadFocus = panel?.element.contains(shell.focused())
    panel?.hide()
    showLauncherState()
    if (hadFocus) giveFocusBack(shell)
    emitter.emit('panel.closed', {})
  }

  function giveFocusBack({ button }: Shell) {
    if (!button.hidden) button.focus()
    else if (focusedBefore instanceof HTMLElement) focusedBefore.focus()
  }

  /** Writes into the message field, unless it has text that the visitor has written. */
  function prefill(text: string) {
    const panel = mounted?.panel
    const current = panel?.draft() ?? (draft || client.draft())
    const isWritten = current !== '' && current !== prefilled
    prefilled = text
    if (isWritten) return
    draft = text
    panel?.setDraft(text)
    // Before the session is resumed, a stored draft of the visitor must stay.
    if (client.session()) client.setDraft(text)
  }

  function toggle() {
    setOpen(!isOpen)
  }

  function setLauncher(isShown: boolean) {
    options.launcher = isShown
    showLauncherState()
  }

  function showLauncherState() {
    const { closePanel, openLauncher, openLauncherUnread } = shownTexts
    const unread = isOpen ? 0 : client.unread() + client.requests().length
    const closed = unread > 0 ? openLauncherUnread(unread) : openLauncher
    const isShown = options.launcher !== false && !embedded && (isOpen || !refusals.isRefused())
    mounted?.shell.setLauncher(isOpen ? closePanel : closed, isOpen, unread, isShown)
  }
}

function pick<From, Name extends keyof From>(from: From, ...names: Name[]) {
  return Object.fromEntries(names.map((name) => [name, from[name]])) as Pick<From, Name>
}
