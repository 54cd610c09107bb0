import type { ConnectionState, WidgetConfig } from '../types.ts'
import { element, icon } from './elements.ts'
import { closeIcon } from './icons.ts'
import { initialOf } from './initials.ts'
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
  configure(undefined)

  return {
    element: header,
    configure,
    setConnection(next: ConnectionState) {
      state = next
      showStatus()
    },
  }

  function configure(config: WidgetConfig | undefined) {
    const shown = config?.appearance.title || texts.title
    const logo = safeHref(config?.appearance.logoUrl ?? '')
    title.replaceChildren(element('bdi', {}, shown))
    mark.replaceChildren(logo ? element('img', { src: logo, alt: '' }) : initialOf(shown))
    isAvailable = config?.availability.online ?? true
    showStatus()
  }

  function showStatus() {
    const live = isAvailable ? texts.online : texts.away
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
