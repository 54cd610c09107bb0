import { element, icon, setAttributes } from './elements.ts'
import { chatIcon, collapseIcon } from './icons.ts'
import type { WidgetTexts } from './texts.ts'

export type Launcher = ReturnType<typeof createLauncher>

/** The round button that opens and closes the panel, with the number of unread messages. */
export function createLauncher(texts: WidgetTexts, panelId: string, onClick: () => void) {
  const badge = element('span', { class: 'badge', 'aria-hidden': 'true', hidden: true })
  const button = element(
    'button',
    { class: 'launcher', type: 'button', part: 'launcher', 'aria-haspopup': 'dialog', 'aria-controls': panelId },
    icon(chatIcon, 'icon chat'),
    icon(collapseIcon, 'icon collapse'),
    badge,
  )
  button.addEventListener('click', onClick)
  update(false, 0)

  return { element: button, focus: () => button.focus(), update }

  function update(isOpen: boolean, unread: number) {
    badge.hidden = unread === 0
    badge.textContent = unread > 9 ? '9+' : String(unread)
    const closedLabel = unread > 0 ? texts.openLauncherUnread(unread) : texts.openLauncher
    setAttributes(button, {
      'aria-expanded': String(isOpen),
      'aria-label': isOpen ? texts.closePanel : closedLabel,
    })
  }
}
