import { initialOf, initialsOf } from '../../../../browser/chat/initials.ts'
import type { MessageAuthor } from '../../vocabulary/types.ts'
import { authorName, picture } from '../elements/author.ts'
import { box, button, closeIcon, element, icon, setAttributes } from '../elements/elements.ts'
import type { PanelParts } from './panel-parts.ts'

export type Header = ReturnType<typeof createHeader>

/** Shows the title of the installation, or the agent, and the state of the chat. */
export function createHeader({ client, texts, dates }: PanelParts, titleId: string, onClose: () => void) {
  const mark = element('span', { class: 'mark', 'aria-hidden': 'true' })
  const title = element('h2', { class: 'title', id: titleId })
  const statusText = element('span', {})
  const status = element('p', { class: 'status', role: 'status' }, element('span', { class: 'dot' }), statusText)
  const close = button('close', icon(closeIcon), onClose, { 'aria-label': texts.closePanel })
  // Use a `div`, because a `header` element would add a second banner landmark to the host page.
  const header = box('header', mark, box('heading', title, status), close)
  let shownTitle = texts.title
  let agent: Partial<MessageAuthor> | undefined

  return {
    element: header,
    setTitle(next: string) {
      shownTitle = next
      show()
    },
    setAgent(next: typeof agent) {
      if (JSON.stringify(next) === JSON.stringify(agent)) return
      agent = next
      show()
    },
    showStatus,
  }

  function show() {
    const name = agent?.displayName
    title.replaceChildren(element('bdi', {}, shownTitle))
    mark.replaceChildren(
      name ? initialsOf(name) : initialOf(shownTitle),
      ...picture(name ? agent?.avatarUrl : client.config()?.appearance.logoUrl),
    )
    setAttributes(mark, { 'data-bot': agent?.kind === 'bot' })
    showStatus()
  }

  function showStatus() {
    const { availability, usualAnswerMinutes, capabilities } = client.config() ?? {}
    const state = client.connection()
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
