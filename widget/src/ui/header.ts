import type { ConnectionState, WidgetConfig } from '../types.ts'
import { element, icon } from './elements.ts'
import { closeIcon } from './icons.ts'
import { initialOf, initialsOf } from './initials.ts'
import { picture } from './picture.ts'
import type { ChatTexts } from './texts.ts'

export type Header = ReturnType<typeof createHeader>

export interface ShownAgent {
  displayName?: string
  avatarUrl?: string
}

/** Title, connection state and the button that closes the panel. */
export function createHeader(texts: ChatTexts, titleId: string, onClose: () => void) {
  const mark = element('span', { class: 'mark', 'aria-hidden': 'true' })
  const title = element('h2', { class: 'title', id: titleId })
  const statusText = element('span', {})
  const status = element('p', { class: 'status', role: 'status' }, element('span', { class: 'dot' }), statusText)
  const close = element('button', { class: 'close', type: 'button', 'aria-label': texts.closePanel }, icon(closeIcon))
  close.addEventListener('click', onClose)
  // No `header` element: it would be a second banner of the host page.
  const header = element('div', { class: 'header' }, mark, element('div', { class: 'heading' }, title, status), close)
  let shownConfig: WidgetConfig | undefined
  let agent: ShownAgent | undefined
  let state: ConnectionState = 'idle'
  configure(undefined)

  return {
    element: header,
    configure,
    /** Shows the assigned agent, if there is one. */
    setAgent(next: ShownAgent | undefined) {
      if (next?.displayName === agent?.displayName && next?.avatarUrl === agent?.avatarUrl) return
      agent = next
      configure(shownConfig)
    },
    setConnection(next: ConnectionState) {
      state = next
      showStatus()
    },
  }

  function configure(config: WidgetConfig | undefined) {
    shownConfig = config
    const shown = config?.appearance.title || texts.title
    const name = agent?.displayName
    title.replaceChildren(element('bdi', {}, shown))
    mark.replaceChildren(
      name ? initialsOf(name) : initialOf(shown),
      ...picture(name ? agent?.avatarUrl : config?.appearance.logoUrl),
    )
    showStatus()
  }

  function showStatus() {
    const isAvailable = shownConfig?.availability.online ?? true
    const live = agent?.displayName ? texts.chattingWith(agent.displayName) : texts.online
    const told = {
      idle: '',
      connecting: texts.connecting,
      online: isAvailable ? live : texts.away,
      reconnecting: texts.reconnecting,
      ended: texts.ended,
    }
    header.dataset.state = state === 'online' && !isAvailable ? 'away' : state
    if (statusText.textContent !== told[state]) statusText.textContent = told[state]
  }
}
