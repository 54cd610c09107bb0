import type { ServiceClient } from '../client.ts'
import { toWidgetError } from '../errors.ts'
import { createComposer } from './composer.ts'
import { createDates } from './dates.ts'
import { element, setAttributes } from './elements.ts'
import { keepFocusInside } from './focus-trap.ts'
import { createHeader, type ShownAgent } from './header.ts'
import { createMessageLog } from './message-log.ts'
import type { WidgetTexts } from './texts.ts'

/** Where the panel fills the screen; the style sheet has the same condition. */
const fullScreenQuery = '(max-width: 480px), (max-height: 480px) and (pointer: coarse)'

/** A start of typing ends by itself after this. */
const typingLastsMs = 8_000

export type Panel = ReturnType<typeof createPanel>

export interface PanelDeps {
  client: ServiceClient
  texts: WidgetTexts
  locale: string | undefined
  panelId: string
  onClose(): void
}

/** The chat itself: header, conversation and composer, kept up to date by the client's events. */
export function createPanel({ client, texts, locale, panelId, onClose }: PanelDeps) {
  const titleId = `${panelId}-title`
  const header = createHeader(texts, titleId, onClose)
  const composer = createComposer(texts, send)
  const log = createMessageLog({
    texts,
    dates: createDates(locale, texts),
    onRetry: (clientOperationId) => void client.retryMessage(clientOperationId),
    loadOlder: client.loadOlder,
    hasOlder: client.hasOlder,
  })
  const notice = element('div', { class: 'notice', role: 'alert', hidden: true })
  const panel = element(
    'section',
    { class: 'panel', id: panelId, role: 'dialog', 'aria-labelledby': titleId, tabindex: '-1', hidden: true },
    header.element,
    log.element,
    notice,
    composer.element,
  )
  panel.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing) return
    event.stopPropagation()
    onClose()
  })
  // On a phone the panel is the whole page, and what lies behind it is out of reach.
  const fullScreen = matchMedia(fullScreenQuery)
  const followScreen = () => setAttributes(panel, { 'aria-modal': fullScreen.matches && 'true' })
  fullScreen.addEventListener('change', followScreen)
  followScreen()
  keepFocusInside(panel, () => fullScreen.matches)
  let assigned: ShownAgent | undefined | null = null
  let typingTimer: ReturnType<typeof setTimeout>
  let isLoaded = false
  configure()
  log.show(client.messages(), true)
  showAgent()

  const subscriptions = [
    client.on('config.loaded', configure),
    client.on('connection.changed', ({ state }) => {
      header.setConnection(state)
      showEnd()
    }),
    client.on('session.ready', showEnd),
    client.on('messages.changed', ({ messages }) => {
      const quiet = !isLoaded && messages.length > 0 && messages.every((message) => message.messageId)
      isLoaded = isLoaded || messages.length > 0
      log.show(messages, quiet)
      showAgent()
    }),
    client.on('agent.assigned', ({ agent }) => showAgent(agent)),
    client.on('agent.unassigned', () => showAgent(undefined, true)),
    client.on('typing.started', ({ author }) => {
      if (author?.kind !== 'visitor') setTyping(author?.displayName || texts.agent)
    }),
    client.on('typing.stopped', () => setTyping(undefined)),
    client.on('message.received', () => setTyping(undefined)),
  ]

  return {
    element: panel,

    /** @param takesFocus whether the visitor is to go on here */
    show(takesFocus: boolean) {
      panel.hidden = false
      log.toEnd()
      if (!takesFocus) return
      // On a touch screen the keyboard would hide the conversation before it was read.
      if (matchMedia('(pointer: coarse)').matches || composer.element.hidden) panel.focus({ preventScroll: true })
      else composer.focus()
    },

    hide() {
      panel.hidden = true
    },

    draft: composer.draft,
    setDraft: composer.setDraft,

    dispose() {
      clearTimeout(typingTimer)
      fullScreen.removeEventListener('change', followScreen)
      log.dispose()
      for (const unsubscribe of subscriptions) unsubscribe()
    },
  }

  function configure() {
    const config = client.config()
    header.configure(config)
    header.setConnection(client.connection())
    log.setGreeting(config?.appearance.greeting || texts.greeting, config?.appearance.title || texts.title)
    if (config) composer.setLimit(config.limits.bodyMaxLength)
  }

  /** Who was assigned; where nobody told, after a reload, whoever wrote last. */
  function showAgent(agent?: ShownAgent, isUnassigned = false) {
    if (agent || isUnassigned) assigned = agent
    const author = client.messages().findLast((message) => message.author.kind === 'agent')?.author
    header.setAgent(assigned === null ? author : assigned)
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

  function setTyping(name: string | undefined) {
    clearTimeout(typingTimer)
    log.setTyping(name)
    if (name !== undefined) typingTimer = setTimeout(() => log.setTyping(undefined), typingLastsMs)
  }

  /** Where nothing can be sent any more, the reason stands in the composer's place. */
  function showEnd() {
    const ended = client.ended()
    notice.hidden = !ended
    composer.element.hidden = ended !== undefined
    if (!ended) return notice.replaceChildren()
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
