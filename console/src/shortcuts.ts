import { type Signal, signal } from '@preact/signals'

export interface Shortcuts {
  /** Whether single keys are active. Users of voice control can turn them off (WCAG 2.1.4). */
  enabled: Signal<boolean>
  /** Binds keys until the returned function is called. The latest binding of a key wins. */
  bind(keys: Record<string, () => void>): () => void
  stop(): void
}

const storageKey = 'service.console.shortcuts'

/** Single-key shortcuts, inactive in text fields and dialogs. `g i` means `g`, then `i`. */
export function createShortcuts(document: Document, storage: Pick<Storage, 'getItem' | 'setItem'>): Shortcuts {
  const enabled = signal(storage.getItem(storageKey) !== 'off')
  const stopKeeping = enabled.subscribe((on) => storage.setItem(storageKey, on ? 'on' : 'off'))
  const layers: Record<string, () => void>[] = []
  let prefix = ''
  let prefixAt = 0

  function handleKey(event: KeyboardEvent) {
    if (!enabled.value || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing)
      return
    if (isWriting(event.target as Element) || document.querySelector('dialog[open]')) return
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
    bind(keys) {
      layers.push(keys)
      return () => void layers.splice(layers.indexOf(keys), 1)
    },
    stop() {
      stopKeeping()
      document.removeEventListener('keydown', handleKey)
    },
  }
}

const isWriting = (target: Element) =>
  target.matches('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]')
