import { isComposing } from '../../browser/chat/composing.ts'
import { storedSwitch } from './storages.ts'

export type Shortcuts = ReturnType<typeof createShortcuts>

/** Handles single-key shortcuts outside of text fields and dialogs. `g i` means `g`, then `i`. */
export function createShortcuts(document: Document) {
  /** Users of voice control can turn the keys off (WCAG 2.1.4). */
  const enabled = storedSwitch('shortcuts', true)
  const layers: Record<string, () => void>[] = []
  let prefix = ''
  let prefixAt = 0

  function handleKey(event: KeyboardEvent) {
    if (!enabled.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (isComposing(event) || isWriting(event.target as Element) || document.querySelector('dialog[open]')) return
    const chord = prefix !== '' && event.timeStamp - prefixAt < 1500 ? `${prefix} ${event.key}` : event.key
    prefix = ''
    const action = layers.findLast((keys) => chord in keys)?.[chord]
    if (action) {
      event.preventDefault()
      action()
    } else if (layers.some((keys) => Object.keys(keys).some((key) => key.startsWith(`${event.key} `)))) {
      prefix = event.key
      prefixAt = event.timeStamp
    }
  }

  document.addEventListener('keydown', handleKey)
  return {
    enabled,
    /** Binds keys until the returned function is called. The latest binding of a key wins. */
    bind(keys: Record<string, () => void>) {
      layers.push(keys)
      return () => void layers.splice(layers.indexOf(keys), 1)
    },
  }
}

const isWriting = (target: Element) =>
  target.matches('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]')
