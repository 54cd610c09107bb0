import { copyButton, element } from './elements.js'
import { lineOf } from './event-log.js'

const kinds = [
  { value: '', name: 'Everything' },
  { value: 'event', name: 'Widget events' },
  { value: 'request', name: 'Calls to the gateway' },
  { value: 'page', name: 'The page' },
]

/**
 * The event log: filter, clear, copy. Newest first. What nobody sees is not drawn.
 *
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} log
 */
export function eventsPanel(log) {
  const filter = element('input', {
    type: 'search',
    placeholder: 'message.…',
    'aria-label': 'Filter by name or content',
  })
  const kind = element(
    'select',
    { 'aria-label': 'What to show' },
    ...kinds.map(({ value, name }) => element('option', { value }, name)),
  )
  const clear = element('button', { type: 'button', class: 'tool' }, 'Clear')
  const copy = copyButton('Copy', () => shown().map(lineOf).join('\n'))
  const list = element('ol', { class: 'entries', 'aria-label': 'Events, newest first' })
  const nothing = element('p', { class: 'note' }, 'Nothing here yet. Open the chat and write something.')
  const count = element('p', { class: 'note', role: 'status' })

  filter.addEventListener('input', render)
  kind.addEventListener('change', render)
  clear.addEventListener('click', () => log.clear())
  let isShown = false
  log.subscribe((entry) => {
    if (!isShown) return
    if (!entry) return render()
    if (matches(entry)) list.prepend(rowOf(entry))
    while (list.childElementCount > log.entries().length) list.lastElementChild?.remove()
    tellCount()
  })
  const content = element(
    'div',
    { class: 'events' },
    element('div', { class: 'tools' }, kind, filter, copy, clear),
    nothing,
    list,
    count,
    element(
      'p',
      { class: 'note' },
      'What your own page hears from the widget. Payloads hold what visitor and agent wrote, never a credential; of calls only path, status and time are kept.',
    ),
  )

  return {
    content,
    /** @param {boolean} shown */
    setShown(shown) {
      isShown = shown
      render()
    },
  }

  function render() {
    list.replaceChildren(...(isShown ? shown() : []).map(rowOf).reverse())
    tellCount()
  }

  function shown() {
    return log.entries().filter(matches)
  }

  /** @param {import('./event-log.js').LogEntry} entry */
  function matches(entry) {
    const sought = filter.value.trim().toLowerCase()
    return (
      (kind.value === '' || kind.value === entry.kind) && `${entry.name} ${entry.text}`.toLowerCase().includes(sought)
    )
  }

  function tellCount() {
    const shownCount = list.childElementCount
    nothing.hidden = shownCount > 0
    count.hidden = shownCount === 0
    count.textContent = shownCount === log.entries().length ? '' : `${shownCount} of ${log.entries().length}`
  }
}

/** @param {import('./event-log.js').LogEntry} entry */
function rowOf({ at, kind, name, text }) {
  const time = at.toISOString().slice(11, 23)
  const details = element(
    'details',
    {},
    element(
      'summary',
      {},
      element('time', { datetime: at.toISOString() }, time),
      element('span', { class: 'name' }, name),
      element('span', { class: 'gist' }, gistOf(text)),
    ),
  )
  details.addEventListener('toggle', () => details.append(element('pre', { tabindex: '0' }, text)), { once: true })
  return element('li', { class: kind }, details)
}

/** @param {string} text */
function gistOf(text) {
  return text
    .replace(/\s+/g, ' ')
    .replace(/^\{ ?| ?\}$/g, '')
    .replaceAll('"', '')
    .slice(0, 120)
}
