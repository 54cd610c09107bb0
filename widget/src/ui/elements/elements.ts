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
