import { isComposing } from '../../../../browser/chat/composing.ts'
import { useLineFeeds } from '../../../../contract/line-ends.ts'

/** Kinds of events without a handler attribute, from which a browser's own list is made. */
const furtherKinds = ['compositionstart', 'compositionupdate', 'compositionend', 'focusin', 'focusout', 'beforeinput']

/** What a key does in a field, as a command. Other keys insert themselves. */
const commands: Record<string, string> = { Backspace: 'delete', Delete: 'forwardDelete' }

/**
 * Keeps the events of the panel from the page, whose shortcuts, menus and focus traps would take
 * them. Capturing listeners of the page still come first. What they prevent in a field is done after
 * them; what they stop does not reach the panel.
 */
export function keepEventsInside(panel: HTMLElement): void {
  const kinds = new Set(furtherKinds)
  for (const name in panel) if (name.startsWith('on')) kinds.add(name.slice(2))
  for (const kind of kinds) panel.addEventListener(kind, (event) => event.stopPropagation())
  for (const kind of ['keydown', 'paste'] as const) panel.addEventListener(kind, restore, { capture: true })
}

export function isField(target: unknown): target is HTMLInputElement | HTMLTextAreaElement {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement
}

/** Does what the page has prevented. `execCommand` keeps the history for *Undo*. */
function restore(event: KeyboardEvent | ClipboardEvent) {
  if (!event.defaultPrevented || !isField(event.target) || event.target.readOnly) return
  if (event instanceof ClipboardEvent)
    return insert('insertText', useLineFeeds(event.clipboardData?.getData('text/plain') ?? ''))
  const { key, ctrlKey, metaKey, altKey } = event
  if (ctrlKey || metaKey || altKey || isComposing(event)) return
  if (commands[key]) insert(commands[key])
  else if ([...key].length === 1) insert('insertText', key)
}

function insert(command: string, text?: string) {
  document.execCommand(command, false, text)
}

const focusable = 'button, a[href], input, select, textarea, [tabindex="0"]'

/**
 * Keeps the focus inside an element when the Tab key is pressed, as in a modal dialog. Has no
 * effect while `isOn` returns false.
 */
export function keepFocusInside(target: HTMLElement, isOn: () => boolean) {
  target.addEventListener('keydown', (event) => {
    if (event.key !== 'Tab' || !isOn()) return
    const stops = [...target.querySelectorAll<HTMLElement>(focusable)].filter((one) => one.checkVisibility())
    const { activeElement } = target.getRootNode() as ShadowRoot
    const [first, last] = [stops[0], stops.at(-1)]
    const isLeaving = event.shiftKey ? activeElement === first || activeElement === target : activeElement === last
    if (!isLeaving) return
    event.preventDefault()
    ;(event.shiftKey ? last : first)?.focus()
  })
}
