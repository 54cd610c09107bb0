import { isComposing } from '../../../../browser/chat/composing.ts'
import { pageLifecycle } from '../../../../browser/page-lifecycle.ts'
import type { ConsentKeeper } from '../../features/consent.ts'
import { toWidgetError } from '../../vocabulary/errors.ts'
import { button, element, setAttributes } from '../elements/elements.ts'
import { createDates } from '../languages/dates.ts'
import { languageOf, regionalLocale } from '../languages/locale-choice.ts'
import { createMessageLog } from '../messages/message-log.ts'
import type { LoadPart } from '../parts.ts'
import { createComposer } from './composer.ts'
import { createHeader } from './header.ts'
import { keepEventsInside, keepFocusInside } from './own-events.ts'
import { createPanelFeatures } from './panel-features.ts'
import type { PanelParts } from './panel-parts.ts'

/** Screens that the panel covers as a whole. `panel.css` has the same condition. */
export const fullScreenQuery = '(max-width: 480px), (max-height: 480px)'

export type Panel = ReturnType<typeof createPanel>

interface PanelDeps extends Omit<PanelParts, 'dates'> {
  addStyles(css: string): void
  loadPart: LoadPart
  locale: string
  panelId: string
  embedded: boolean
  onClose(): void
  /** Returns the text that the page wrote into the message field, which is not the visitor's. */
  prefilled(): string
}

export function createPanel(deps: PanelDeps) {
  const { client, texts, locale, panelId, embedded, onClose } = deps
  const titleId = `${panelId}-title`
  const composer = createComposer(texts, send, client.setDraft, client.stopAnswer)
  const dates = createDates(regionalLocale(locale), texts)
  const header = createHeader({ ...deps, dates }, titleId, onClose)
  const isHeld = () => consent?.state()?.isHolding ?? false
  const log = createMessageLog({ ...deps, dates, isHeld, onReply: send })
  const showLines = () => log.show(features.withLines(client.messages()), false)
  const features = createPanelFeatures({ ...deps, header, log, dates, composer, onLines: showLines })
  const notice = element('div', { class: 'notice', role: 'alert', hidden: true })
  const panel = element(
    'section',
    {
      class: 'panel',
      id: panelId,
      role: embedded ? 'region' : 'dialog',
      'aria-labelledby': titleId,
      tabindex: '-1',
      hidden: true,
    },
    header.element,
    log.element,
    features.form,
    features.aboveComposer,
    notice,
    composer.element,
  )
  keepEventsInside(panel)
  panel.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || isComposing(event)) return
    onClose()
  })
  // On a small screen, the panel covers the page, so it is modal.
  const fullScreen = matchMedia(fullScreenQuery)
  const isModal = () => fullScreen.matches && !embedded
  const followScreen = () => setAttributes(panel, { 'aria-modal': isModal() && 'true' })
  fullScreen.addEventListener('change', followScreen)
  followScreen()
  keepFocusInside(panel, isModal)
  let shown = client.session()
  let isLoaded = false
  let consent: ConsentKeeper | undefined
  void client.consent().then((keeper) => {
    consent = keeper
    showLines()
  })
  configure()
  log.show(features.withLines(client.messages()), true)
  showEnd()

  const subscriptions = [
    client.on('config.loaded', configure),
    client.on('consent.changed', showLines),
    client.on('unread.changed', log.followUnread),
    client.on('connection.changed', () => {
      header.showStatus()
      showEnd()
    }),
    client.on('session.ready', () => {
      restoreDraft()
      showEnd()
      showLines()
    }),
    client.on('messages.changed', ({ messages }) => {
      // The visitor has left, perhaps in another tab. The next person must not see the draft.
      if (shown && messages.length === 0 && !client.session()) {
        shown = undefined
        composer.setDraft('')
      }
      const quiet = !isLoaded && messages.length > 0 && messages.every((message) => message.messageId)
      isLoaded = messages.length > 0
      composer.setStoppable(
        client.config()?.capabilities.stopAnswer !== false && messages.some(({ growing }) => growing),
      )
      log.show(features.withLines(messages), quiet)
    }),
    pageLifecycle.subscribe((signal) => {
      if (signal === 'online' || signal === 'offline') showLines()
    }),
  ]

  return {
    element: panel,

    /**
     * Shows the panel.
     *
     * @param focuses true to move the focus into the panel
     * @param newCount number of messages that were unread before
     */
    show(focuses: boolean, newCount: number) {
      panel.hidden = false
      log.markNew(newCount)
      showLines()
      log.toUnseen()
      if (!focuses) return
      // The keyboard of a touch screen would cover the messages.
      const isTouch = matchMedia('(pointer: coarse)').matches
      if (features.isFormShown() && !isTouch) features.focusForm()
      else if (isTouch || composer.element.hidden) panel.focus({ preventScroll: true })
      else composer.focus()
    },

    hide() {
      panel.hidden = true
    },

    restoreScroll: log.restoreScroll,
    draft: composer.draft,
    setDraft: composer.setDraft,

    remove() {
      fullScreen.removeEventListener('change', followScreen)
      features.dispose()
      log.dispose()
      for (const unsubscribe of subscriptions) unsubscribe()
      panel.remove()
    },
  }

  function configure() {
    const look = client.config()?.appearance
    const texted = look?.translations
    // The texts of the exact locale come first, then those of the language, then the default.
    const { title, greeting, openingReplies } = { ...look, ...texted?.[languageOf(locale)], ...texted?.[locale] }
    header.setTitle(title || texts.title)
    log.setGreeting(greeting || texts.greeting, title || texts.title, openingReplies?.texts ?? [])
  }

  /** A draft from before the first session is stored. Otherwise the stored draft is shown. */
  function restoreDraft() {
    const before = shown
    shown = client.session()
    if (before?.sessionId === shown?.sessionId) return
    const isWritten = composer.draft() && (composer.draft() !== deps.prefilled() || !client.draft())
    if (!before && isWritten) client.setDraft(composer.draft())
    else if (composer.draft() !== client.draft()) composer.setDraft(client.draft())
  }

  function send(body: string) {
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

  /** If the chat has ended, shows the reason and hides the message field. */
  function showEnd() {
    const ended = client.ended()
    const hadFocus = composer.element.matches(':focus-within')
    notice.hidden = !ended
    composer.element.hidden = ended !== undefined || features.isFormShown()
    if (!ended) return notice.replaceChildren()
    if (hadFocus) panel.focus({ preventScroll: true })
    const { previousEnded, endReasons, startNew } = texts
    // Without a session on this page, the session of an earlier page has ended.
    const isPrevious = ended.event && client.canStartNew() && !shown
    const reason = element('p', {}, isPrevious ? previousEnded : endReasons[ended.event ?? 'unavailable'])
    if (!client.canStartNew()) return notice.replaceChildren(reason)
    const again = () => {
      log.show([], true)
      isLoaded = false
      void client.startNew().then(() => composer.focus())
    }
    notice.replaceChildren(reason, button('again', startNew, again))
  }
}
