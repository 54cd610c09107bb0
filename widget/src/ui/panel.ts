import type { ServiceClient } from '../client.ts'
import { toWidgetError } from '../errors.ts'
import { createComposer } from './composer.ts'
import { createDates } from './dates.ts'
import { element, setAttributes } from './elements.ts'
import { keepFocusInside } from './focus-trap.ts'
import { createHeader } from './header.ts'
import { createMessageLog } from './message-log.ts'
import { pageLifecycle } from './page-lifecycle.ts'
import { createPanelFeatures } from './panel-features.ts'
import type { ShownTexts } from './texts.ts'

/** Media query of the full-screen panel. The style sheet has the same condition. */
export const fullScreenQuery = '(max-width: 480px), (max-height: 480px) and (pointer: coarse)'

export type Panel = ReturnType<typeof createPanel>

export interface PanelDeps {
  client: ServiceClient
  texts: ShownTexts
  locale: string | undefined
  panelId: string
  onClose(): void
  /** Whether the present session began after the chat before it was disabled. */
  hasPreviousEnded(): boolean
  /** Announces a text to screen readers. */
  announce(text: string): void
  /** Takes the whole widget out of sight for a moment, and back. */
  conceal(isHidden: boolean): void
  /** Adds a sheet to the widget's own. */
  addStyles(css: string): void
}

/** The chat itself: header, conversation and composer, kept up to date by the client's events. */
export function createPanel({ client, texts, locale, panelId, onClose, hasPreviousEnded, ...deps }: PanelDeps) {
  const titleId = `${panelId}-title`
  const header = createHeader(texts, titleId, onClose)
  const composer = createComposer(texts, send, client.setDraft)
  const log = createMessageLog({
    texts,
    dates: createDates(locale, texts),
    isOnline: pageLifecycle.isOnline,
    onRetry: (clientOperationId) => void client.retryMessage(clientOperationId),
    loadOlder: client.loadOlder,
    hasOlder: client.hasOlder,
  })
  const showLines = () => log.show(features.withLines(client.messages()), false)
  const features = createPanelFeatures({ client, texts, header, log, composer, ...deps, onLines: showLines })
  const notice = element('div', { class: 'notice', role: 'alert', hidden: true })
  const panel = element(
    'section',
    { class: 'panel', id: panelId, role: 'dialog', 'aria-labelledby': titleId, tabindex: '-1', hidden: true },
    header.element,
    log.element,
    features.form,
    features.aboveComposer,
    notice,
    composer.element,
  )
  panel.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing) return
    event.stopPropagation()
    onClose()
  })
  // On a phone the panel covers the page, so it is modal.
  const fullScreen = matchMedia(fullScreenQuery)
  const followScreen = () => setAttributes(panel, { 'aria-modal': fullScreen.matches && 'true' })
  fullScreen.addEventListener('change', followScreen)
  followScreen()
  keepFocusInside(panel, () => fullScreen.matches)
  let shown = client.session()
  let isLoaded = false
  configure()
  log.show(features.withLines(client.messages()), true)
  showEnd()
  log.showPreviousEnded(hasPreviousEnded())

  const subscriptions = [
    client.on('config.loaded', configure),
    client.on('connection.changed', ({ state }) => {
      header.setConnection(state)
      showEnd()
    }),
    client.on('session.ready', () => {
      takeDraft()
      showEnd()
      log.showPreviousEnded(hasPreviousEnded())
    }),
    client.on('session.closed', () => {
      // They have logged out in another tab, perhaps.
      if (shown?.identity.state === 'verified') composer.setDraft('')
    }),
    client.on('messages.changed', ({ messages }) => {
      const quiet = !isLoaded && messages.length > 0 && messages.every((message) => message.messageId)
      isLoaded = messages.length > 0
      log.show(features.withLines(messages), quiet)
    }),
    pageLifecycle.subscribe((signal) => {
      if (signal === 'online' || signal === 'offline') showLines()
    }),
  ]

  return {
    element: panel,

    /** @param takesFocus whether the visitor is to go on here */
    show(takesFocus: boolean) {
      panel.hidden = false
      log.toEnd()
      if (!takesFocus) return
      // On a touch screen the keyboard would hide the conversation before it was read.
      const isTouch = matchMedia('(pointer: coarse)').matches
      if (features.isFormShown() && !isTouch) features.focusForm()
      else if (isTouch || composer.element.hidden) panel.focus({ preventScroll: true })
      else composer.focus()
    },

    hide() {
      panel.hidden = true
    },

    draft: composer.draft,
    setDraft: composer.setDraft,

    dispose() {
      fullScreen.removeEventListener('change', followScreen)
      features.dispose()
      log.dispose()
      for (const unsubscribe of subscriptions) unsubscribe()
    },
  }

  function configure() {
    const config = client.config()
    header.configure(config)
    header.setConnection(client.connection())
    log.setGreeting(config?.appearance.greeting || texts.greeting, config?.appearance.title || texts.title)
  }

  /** A draft from before the session is stored with it. Another session has its own draft. */
  function takeDraft() {
    const before = shown
    shown = client.session()
    if (before?.sessionId === shown?.sessionId) return
    if (!before && composer.draft()) client.setDraft(composer.draft())
    else if (composer.draft() !== client.draft()) composer.setDraft(client.draft())
  }

  function send(body: string): string | undefined {
    try {
      client.sendMessage(body)
      return undefined
    } catch (error) {
      const { code } = toWidgetError(error)
      if (code === 'message_empty') return undefined
      if (code === 'message_too_long') return texts.tooLong(client.config()?.limits.bodyMaxLength ?? 4_000)
      return code === 'outbox_full' ? texts.outboxFull : texts.endReasons.unavailable
    }
  }

  /** After the end of the chat, shows the reason instead of the composer. */
  function showEnd() {
    const ended = client.ended()
    const hadFocus = composer.element.matches(':focus-within')
    notice.hidden = !ended
    composer.element.hidden = ended !== undefined || features.isFormShown()
    if (!ended) return notice.replaceChildren()
    if (hadFocus) panel.focus({ preventScroll: true })
    const reason = element('p', {}, texts.endReasons[ended.event ?? 'unavailable'])
    if (!client.canStartNew()) return notice.replaceChildren(reason)
    const again = element('button', { class: 'again', type: 'button' }, texts.startNew)
    again.addEventListener('click', () => {
      log.show([], true)
      isLoaded = false
      void client.startNew().then(() => composer.focus())
    })
    notice.replaceChildren(reason, again)
  }
}
