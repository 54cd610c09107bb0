type Attributes = Record<string, string | boolean | undefined>

/** Strings become text nodes and never markup, so Trusted Types do not block them. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag)
  setAttributes(made, attributes)
  made.append(...children)
  return made
}

export function setAttributes(target: Element, attributes: Attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'string') target.setAttribute(name, value)
    else target.toggleAttribute(name, value === true)
  }
}

export const box = (className: string, ...children: (Node | string)[]) =>
  element('div', { class: className }, ...children)

export function button(className: string, label: Node | string, onClick: () => unknown, attributes: Attributes = {}) {
  const made = element('button', { class: className, type: 'button', ...attributes }, label)
  made.addEventListener('click', onClick)
  return made
}

/** Shows a text, or hides the element without one. */
export function showText(target: HTMLElement, text = '') {
  target.hidden = text === ''
  target.textContent = text
}

export const hasFocus = (target: Element) => target.contains((target.getRootNode() as ShadowRoot).activeElement)

const svgNamespace = 'http://www.w3.org/2000/svg'

/** Creates an icon of 24 by 24 pixels in the text colour. */
export function icon(path: string, className = 'icon'): SVGSVGElement {
  const svg = document.createElementNS(svgNamespace, 'svg')
  const drawn = document.createElementNS(svgNamespace, 'path')
  setAttributes(svg, { class: className, viewBox: '0 0 24 24', 'aria-hidden': 'true' })
  setAttributes(drawn, { d: path })
  svg.append(drawn)
  return svg
}

export const collapseIcon = 'M6 9.5l6 6 6-6'
export const soundIcon = 'M6.5 16.5V11a5.5 5.5 0 0 1 11 0v5.5L19 18H5Z M10.3 20.5a1.9 1.9 0 0 0 3.4 0'
export const soundOffIcon = `${soundIcon} M4.5 4.5l15 15`
export const closeIcon = 'M6.5 6.5l11 11 M17.5 6.5l-11 11'
export const sendIcon = 'M12 19V5.5 M6 11.2l6-6 6 6'
export const stopIcon = 'M7.5 7.5h9v9h-9Z'
export const downIcon = 'M12 5v13.5 M6 12.8l6 6 6-6'
export const alertIcon = 'M12 8v5 M12 16.2v.1 M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17Z'
export const tickIcon = 'M5.5 12.5l4.5 4.5 8.5-9.5'
