const focusable = 'button, a[href], input, select, textarea, [tabindex="0"]'

/** Lets Tab go round inside an element while a condition holds, as in a dialog that covers everything. */
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
