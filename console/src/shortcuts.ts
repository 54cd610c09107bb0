import { type Signal, signal } from '@preact/signals'

export interface Shortcuts {
  /** Single keys do something; whoever speaks to the machine can switch that off (WCAG 2.1.4). */
  enabled: Signal<boolean>
  /** Binds keys until the answer is called. The latest binding of a key counts. */
  bind(keys: Record<string, () => void>): () => void
  stop(): void
}

const storageKey = 'service.console.shortcuts'

/** Single keys, where nothing is being written and no dialog is open. `g i` is written as it is typed: `g`, then `i`. */
export function createShortcuts(document: Document, storage: Pick<Storage, 'getItem' | 'setItem'>): Shortcuts {
  const enabled = signal(storage.getItem(storageKey) !== 'off')
  const stopKeeping = enabled.subscribe((on) => storage.setItem(storageKey, on ? 'on' : 'off'))
  const layers: Record<string, () => void>[] = []
  let prefix = ''
  let prefixAt = 0

  function pressed(event: KeyboardEvent) {
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

  document.addEventListener('keydown', pressed)
  return {
    enabled,
    bind(keys) {
      layers.push(keys)
      return () => void layers.splice(layers.indexOf(keys), 1)
    },
    stop() {
      stopKeeping()
      document.removeEventListener('keydown', pressed)
    },
  }
}

const isWriting = (target: Element) =>
  target.matches('input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]')
