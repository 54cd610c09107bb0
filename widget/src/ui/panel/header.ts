import { initialOf, initialsOf } from '../../../../browser/chat/initials.ts'
import type { ConnectionState, MessageAuthor, WidgetConfig } from '../../vocabulary/types.ts'
import { authorName, picture } from '../elements/author.ts'
import { box, button, closeIcon, element, icon, setAttributes } from '../elements/elements.ts'
import type { Dates } from '../languages/dates.ts'
import type { WidgetTexts } from '../languages/en.ts'

export type Header = ReturnType<typeof createHeader>

export function createHeader(texts: WidgetTexts, dates: Dates, titleId: string, onClose: () => void) {
  const mark = element('span', { class: 'mark', 'aria-hidden': 'true' })
  const title = element('h2', { class: 'title', id: titleId })
  const statusText = element('span', {})
  const status = element('p', { class: 'status', role: 'status' }, element('span', { class: 'dot' }), statusText)
  const close = button('close', icon(closeIcon), onClose, { 'aria-label': texts.closePanel })
  // Use a `div`, because a `header` element would add a second banner landmark to the host page.
  const header = box('header', mark, box('heading', title, status), close)
  let shownConfig: WidgetConfig | undefined
  let shownTitle = texts.title
  let agent: Partial<MessageAuthor> | undefined
  let state: ConnectionState = 'idle'
  configure(undefined, shownTitle)

  return {
    element: header,
    configure,
    /** Without an agent, the header shows the title of the installation. */
    setAgent(next: typeof agent) {
      if (JSON.stringify(next) === JSON.stringify(agent)) return
      agent = next
      configure(shownConfig, shownTitle)
    },
    setConnection(next: ConnectionState) {
      state = next
      showStatus()
    },
  }

  function configure(config: WidgetConfig | undefined, shown: string) {
    shownConfig = config
    shownTitle = shown
    const name = agent?.displayName
    title.replaceChildren(element('bdi', {}, shown))
    mark.replaceChildren(
      name ? initialsOf(name) : initialOf(shown),
      ...picture(name ? agent?.avatarUrl : config?.appearance.logoUrl),
    )
    setAttributes(mark, { 'data-bot': agent?.kind === 'bot' })
    showStatus()
  }

  function showStatus() {
    const { availability, usualAnswerMinutes, capabilities } = shownConfig ?? {}
    const isAvailable = availability?.online ?? true
    const nobodyYet = usualAnswerMinutes ? texts.usualAnswer(dates.duration(usualAnswerMinutes)) : texts.online
    const live = agent?.displayName ? texts.chattingWith(authorName({ kind: 'agent', ...agent }, texts)) : nobodyYet
    const stateTexts = {
      idle: '',
      connecting: texts.connecting,
      online: isAvailable ? live : capabilities?.offlineForm ? texts.awayByMail : texts.away,
      reconnecting: texts.reconnecting,
      ended: texts.ended,
    }
    header.dataset.state = state === 'online' && !isAvailable ? 'away' : state
    if (statusText.textContent !== stateTexts[state]) statusText.textContent = stateTexts[state]
  }
}
