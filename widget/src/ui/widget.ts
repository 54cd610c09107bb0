import { createServiceClient, type ServiceClient, type ServiceClientOptions } from '../client.ts'
import { createEmitter, type Handler } from '../events.ts'
import { storageFor } from '../storage.ts'
import type { WidgetEventMap, WidgetMessage } from '../types.ts'
import { type Announcer, createAnnouncer } from './announcer.ts'
import type { LauncherHost } from './launcher-host.ts'
import { browserLocale, chooseLocale, languageOf, pageLocales, wellFormed } from './locale-choice.ts'
import { loadTexts, widgetLocales } from './locales.ts'
import { pageContextOf } from './page-context.ts'
import { pagePlatform } from './page-platform.ts'
import { createPanel, type Panel } from './panel.ts'
import { createShell, type Shell, type ShellOptions, type Theme } from './shell.ts'
import { englishTexts, type WidgetTexts } from './texts.ts'
import { createUnreadRecord } from './unread-record.ts'
import { followVisualViewport } from './viewport.ts'

export interface ServiceWidgetOptions extends ServiceClientOptions, ShellOptions {
  /** Replaces texts of the user interface, in whatever language it speaks. */
  texts?: Partial<WidgetTexts>
  /** Replaces texts in one language, or adds a language: keys are tags such as `de` or `de-CH`. */
  localeTexts?: Record<string, Partial<WidgetTexts>>
}

/** The widget on a page. */
export interface ServiceWidget {
  /**
   * Shows the launcher, creates the visitor's session or takes up the tab's, and keeps it renewed until `unmount`. Resolves
   * once there is a session or it is known that there will be none; it never rejects.
   */
  mount(): Promise<void>
  /** Takes the widget off the page and closes its connection. A later `mount` goes on with the session. */
  unmount(): void
  /** Opens the panel, and mounts the widget where it is not mounted. */
  open(): void
  /** Closes the panel. The session goes on. */
  close(): void
  toggle(): void
  setOpen(isOpen: boolean): void
  isOpen(): boolean
  showLauncher(): void
  /** Takes the launcher away, not the chat: the page opens it by `open`. */
  hideLauncher(): void
  setTheme(theme: Theme): void
  /** Changes the language at once; undefined goes back to what page and browser ask for. */
  setLocale(locale: string | undefined): void
  /** Writes into the composer, for the visitor to send or not. */
  prefill(text: string): void
  /** Messages from the other side since the panel was last open. */
  unreadCount(): number
  /** @throws WidgetError `message_empty`, `message_too_long`, `outbox_full`, `not_started` or `session_ended` */
  sendMessage(body: string): WidgetMessage
  /** Sends a failed message once more, as the same operation. */
  retryMessage(clientOperationId: string): boolean
  messages(): readonly WidgetMessage[]
  identify: ServiceClient['identify']
  clearIdentity: ServiceClient['clearIdentity']
  resetVisitor: ServiceClient['resetVisitor']
  /** Subscribes to an event; the answer unsubscribes. */
  on<Name extends keyof WidgetEventMap>(name: Name, handler: Handler<WidgetEventMap[Name]>): () => void
}

interface Mounted {
  shell: Shell
  announcer: Announcer
  /** Missing while its language is on the way. */
  panel?: Panel
  remove(): void
}

const panelId = 'panel'

/** What follows is a task of its own: nothing of the chat holds up the page for long. */
const nextTask = () => new Promise((resolve) => setTimeout(resolve))

/** The chat behind a launcher, which is asked for when the widget is mounted. Touches neither page nor storage before. */
export function createWidget(
  { texts, localeTexts, locale, ...options }: ServiceWidgetOptions,
  hostOf: () => LauncherHost,
): ServiceWidget {
  locale = locale && wellFormed(locale)
  const emitter = createEmitter<WidgetEventMap>()
  const platform = { ...pagePlatform(), storage: storageFor(options.storage ?? 'session'), ...options.platform }
  const client = createServiceClient(
    { pageContext: pageContextOf, ...options, locale: locale ?? browserLocale(), platform },
    emitter,
  )
  const unreadRecord = createUnreadRecord(platform.storage, options.siteKey)
  let mounted: Mounted | undefined
  let shownTexts: WidgetTexts = { ...englishTexts, ...texts }
  let shownLocale: string | undefined
  let isOpen = false
  let unread = 0
  let draft = ''
  let focusedBefore: Element | null = null

  client.on('message.received', ({ message: { author, body } }) => {
    if (isOpen) return
    mounted?.announcer.announce(`${author.displayName || shownTexts.agent}: ${body}`)
    setUnread(unread + 1)
  })
  client.on('config.loaded', configure)

  return {
    mount,
    unmount() {
      if (!mounted) return
      isOpen = false
      unread = 0
      mounted.remove()
      mounted = undefined
      shownLocale = undefined
      client.stop()
    },
    open: () => setOpen(true),
    close: () => setOpen(false),
    toggle,
    setOpen,
    isOpen: () => isOpen,
    showLauncher: () => setLauncher(true),
    hideLauncher: () => setLauncher(false),
    setTheme(theme) {
      options.theme = theme
      mounted?.shell.setTheme(theme)
    },
    setLocale(next) {
      locale = next
      speak()
    },
    prefill(text) {
      draft = text
      mounted?.panel?.setDraft(text)
    },
    unreadCount: () => unread,
    sendMessage: client.sendMessage,
    retryMessage: client.retryMessage,
    messages: client.messages,
    identify: client.identify,
    clearIdentity: client.clearIdentity,
    resetVisitor: client.resetVisitor,
    on: client.on,
  }

  function mount() {
    if (!mounted) {
      mounted = build()
      unread = unreadRecord.read()
      configure()
    }
    return client.start()
  }

  function build(): Mounted {
    const host = hostOf()
    const shell = createShell(host, options)
    const announcer = createAnnouncer()
    shell.frame.append(announcer.element)
    host.button.onclick = toggle
    const unfollow = followVisualViewport(shell.frame)
    return {
      shell,
      announcer,
      remove() {
        unfollow()
        mounted?.panel?.dispose()
        mounted?.panel?.element.remove()
        announcer.element.remove()
        shell.remove()
      },
    }
  }

  function configure() {
    mounted?.shell.setAppearance(client.config()?.appearance)
    speak()
  }

  /** Speaks the language that page, browser and installation agree on. The panel is built anew in it. */
  function speak() {
    const known = [...widgetLocales, ...Object.keys(localeTexts ?? {})]
    const chosen = mounted && chooseLocale(locale, pageLocales(), known, client.config()?.locale)
    if (!chosen || chosen === shownLocale) return
    shownLocale = chosen
    void Promise.all([loadTexts(chosen), nextTask()]).then(([own]) => {
      if (chosen === shownLocale) show(chosen, own)
    })
  }

  function show(chosen: string, own: WidgetTexts) {
    if (!mounted) return
    shownTexts = { ...own, ...texts, ...localeTexts?.[languageOf(chosen)], ...localeTexts?.[chosen] }
    const { shell, panel: before } = mounted
    const hadFocus = before?.element.contains(shell.focused())
    if (before) draft = before.draft()
    before?.dispose()
    before?.element.remove()
    const panel = createPanel({ client, texts: shownTexts, locale: chosen, panelId, onClose: () => setOpen(false) })
    mounted.panel = panel
    panel.setDraft(draft)
    shell.setLocale(chosen)
    shell.frame.append(panel.element)
    shell.button.setAttribute('aria-controls', panelId)
    showLauncherState()
    if (!isOpen) return
    void nextTask().then(() => {
      if (isOpen && mounted?.panel === panel) panel.show(!before || hadFocus === true)
    })
  }

  function setOpen(next: boolean) {
    if (next === isOpen) return
    if (next) {
      isOpen = true
      focusedBefore = mounted?.shell.focused() ? null : document.activeElement
      void mount()
      const { panel, announcer } = mounted!
      announcer.clear()
      setUnread(0)
      panel?.show(true)
      emitter.emit('panel.opened', {})
      return
    }
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

  function toggle() {
    setOpen(!isOpen)
  }

  function setUnread(count: number) {
    if (count !== unread) {
      unread = count
      unreadRecord.write(count)
      emitter.emit('unread.changed', { count })
    }
    showLauncherState()
  }

  function setLauncher(isShown: boolean) {
    options.launcher = isShown
    if (mounted) mounted.shell.button.hidden = !isShown
  }

  function showLauncherState() {
    const { closePanel, openLauncher, openLauncherUnread } = shownTexts
    const closed = unread > 0 ? openLauncherUnread(unread) : openLauncher
    mounted?.shell.setLauncher(isOpen ? closePanel : closed, isOpen, unread)
  }
}
