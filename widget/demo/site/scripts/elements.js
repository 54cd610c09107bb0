/**
 * An element with its attributes and children. Text is text: nothing here takes markup.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | boolean>} [attributes] `true` sets an empty one, `false` none
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(name, value === true ? '' : value)
  }
  made.append(...children)
  return made
}

/**
 * A button that copies, and says for a moment that it did.
 *
 * @param {string} label
 * @param {() => string} text
 */
export function copyButton(label, text) {
  const button = element('button', { type: 'button', class: 'tool' }, label)
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(text()).then(
      () => say('Copied'),
      () => say('Not allowed here'),
    )
  })
  return button

  /** @param {string} word */
  function say(word) {
    button.textContent = word
    setTimeout(() => {
      button.textContent = label
    }, 1_600)
  }
}
