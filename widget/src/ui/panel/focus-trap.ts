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
