import type { Agent, ConnectionState, WidgetConfig } from '../types.ts'
import { element, icon } from './elements.ts'
import { closeIcon } from './icons.ts'
import { initialOf, initialsOf } from './initials.ts'
import { safeHref } from './linkify.ts'
import type { WidgetTexts } from './texts.ts'

export type Header = ReturnType<typeof createHeader>

/** Title, connection state and the button that closes the panel. */
export function createHeader(texts: WidgetTexts, titleId: string, onClose: () => void) {
  const mark = element('span', { class: 'mark', 'aria-hidden': 'true' })
  const title = element('h2', { class: 'title', id: titleId })
  const statusText = element('span', {})
  const status = element('p', { class: 'status', role: 'status' }, element('span', { class: 'dot' }), statusText)
  const close = element('button', { class: 'close', type: 'button', 'aria-label': texts.closePanel }, icon(closeIcon))
  close.addEventListener('click', onClose)
  const header = element(
    'header',
    { class: 'header' },
    mark,
    element('div', { class: 'heading' }, title, status),
    close,
  )
  let isAvailable = true
  let state: ConnectionState = 'idle'
  let agent: Agent | undefined
  let site: Node | string = ''
  configure(undefined)

  return {
    element: header,
    configure,
    /** Who takes care of the conversation, in place of the site's mark and status. */
    setAgent(next: Agent | undefined) {
      if (agent?.displayName === next?.displayName && agent?.avatarUrl === next?.avatarUrl) return
      agent = next
      showMark()
      showStatus()
    },
    setConnection(next: ConnectionState) {
      state = next
      showStatus()
    },
  }

  function configure(config: WidgetConfig | undefined) {
    const shown = config?.appearance.title || texts.title
    const logo = safeHref(config?.appearance.logoUrl ?? '')
    title.replaceChildren(element('bdi', {}, shown))
    site = logo ? element('img', { src: logo, alt: '' }) : initialOf(shown)
    showMark()
    isAvailable = config?.availability.online ?? true
    showStatus()
  }

  function showMark() {
    const src = safeHref(agent?.avatarUrl ?? '')
    const image = src ? element('img', { src, alt: '' }) : undefined
    image?.addEventListener('error', () => image.replaceWith(initialsOf(agent?.displayName ?? '')))
    mark.toggleAttribute('data-agent', agent !== undefined)
    mark.replaceChildren(agent ? (image ?? initialsOf(agent.displayName)) : site)
  }

  function showStatus() {
    const live = agent ? texts.withAgent(agent.displayName) : isAvailable ? texts.online : texts.away
    const told = {
      idle: '',
      connecting: texts.connecting,
      online: live,
      reconnecting: texts.reconnecting,
      ended: texts.ended,
    }
    header.dataset.state = state === 'online' && !isAvailable ? 'away' : state
    if (statusText.textContent !== told[state]) statusText.textContent = told[state]
  }
}
